// Package host serves one MCP host: the server's side of a connection, in either era of the
// protocol.
//
// A [Session] receives the messages of a host, registers its requests as in flight, and answers
// each exactly once, under the host's own id and in the order that the protocol wants. The
// handshake, lists and subscriptions go to an SDK server (control.go); every other request goes
// to HandleRequest as bytes. A session knows no stream and no HTTP: it writes through an [Edge],
// which is [Stdio] or a session of package gateway. A host that reads slowly loses
// notifications that may be lost, then its connection, but delays no other (outgoing.go).
//
// It never decides which upstream a request is for, and imports nothing of the upstreams' side.
// Read session.go first, then inflight.go, then outgoing.go.
package host
