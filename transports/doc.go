// Package transports holds the words that both halves of it share: the eras of
// the protocol, failures and their outcomes, and what a peer takes.
//
// Package upstream reaches upstreams, package host is reached by hosts, both in
// raw bytes; neither knows the other. What a message means to the other side is
// the aggregator's to decide.
package transports
