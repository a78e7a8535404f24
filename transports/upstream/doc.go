// Package upstream is the connection to one upstream: a JSON-RPC peer over the
// pipes of a child process, over streamable HTTP, over the event stream that came
// before it, or over a stream that is there already, in either era of the
// protocol.
//
// A [Conn] owns the ids and the progress tokens of the calls in flight, delivers
// what the upstream sends in the order it was sent, and ends every call exactly
// once. It never decides what a message means to a host and never sends a call
// twice. It ends when the transport does, when a panic shows that it cannot go on,
// or when the upstream is silent to pings; never because a call takes long or
// because the upstream does not read.
//
//	Conn               conn.go       options, life, end
//	├ Call, pending    call.go       a call from Start to Done; pending.go: those in flight
//	├ handshake        handshake.go  which era, and what the upstream says of itself
//	├ receive          receive.go    responses, notifications, requests of the upstream
//	├ health           health.go     pings after a timeout
//	├ subscriptions    subscribe.go  the notification stream of the stateless era
//	└ link             link.go       how messages travel:
//	  childLink        child.go      a process; with streamLink, lines.go
//	  streamLink       stream.go     a stream that is there already
//	  httpLink         http.go       a POST a call, http_exchange.go; a GET stream, http_listen.go
//	  sseLink          sse.go        POSTs, and one stream for all answers
//
// Read conn.go and call.go first, then the link of interest, then receive.go.
package upstream
