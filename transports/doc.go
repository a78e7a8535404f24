// Package transports reaches upstreams and is reached by hosts, in raw bytes.
//
// Towards an upstream there is one type, [Conn]: a JSON-RPC peer over the pipes
// of a child process, over streamable HTTP or over the event stream that came
// before it, in either era of the protocol. It owns the ids and the progress
// tokens of what is in flight, delivers what the upstream sends in the order it
// was sent, and ends every call exactly once.
//
// Towards a host there is [Host]: the lines of stdin and stdout. It splits
// what the host sends into two planes. Calls go to a function as the bytes
// they are (the data plane); the handshake, the lists and subscriptions go to
// an SDK server over a connection of its own, control.go (the control plane).
//
// The package knows no catalogue and no configuration but the entry of one
// server, and it never decides what a message means to a host: that is the
// aggregator's.
//
// Read conn.go and call.go, then stdio.go and http.go for the two ways a Conn
// sends and receive.go for what comes back, then host.go.
package transports
