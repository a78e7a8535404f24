// Package transports holds the definitions shared by both sides: the eras of the protocol,
// failures and their outcomes, and the Peer interface.
//
// Package upstream connects to upstreams and package host serves hosts. Both handle raw bytes,
// and neither imports the other. The aggregator decides what a message means to the other side.
package transports
