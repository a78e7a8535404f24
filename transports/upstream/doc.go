// Package upstream is the connection to one upstream: a JSON-RPC peer over the pipes of a child
// process, over streamable HTTP, over its predecessor HTTP with SSE, or over an existing
// stream, in either era of the protocol.
//
// A [Conn] manages the ids and the progress tokens of the calls in flight, delivers messages
// in the order in which the upstream sent them, and ends every call exactly once. It never
// interprets a message for a host and never sends a call twice. It ends when the transport
// does, after a panic, or when the upstream does not answer pings; never because a call
// takes long or because the upstream does not read.
//
//	Conn               conn.go       options, life, end
//	├ Call, pending    call.go       a call from Start to Done; pending.go: those in flight
//	├ handshake        handshake.go  the era and the description of the upstream
//	├ receive          receive.go    responses, notifications, requests of the upstream
//	├ health           health.go     pings after a timeout
//	├ subscriptions    subscribe.go  the notification stream of the stateless era
//	└ link             link.go       how messages travel:
//	  childLink        child.go      a process; with streamLink, lines.go
//	  streamLink       stream.go     an existing stream
//	  httpLink         http.go       a POST a call, http_exchange.go; a GET stream, http_listen.go
//	  sseLink          sse.go        POSTs, and one stream for all answers
//	  adaptedLink      adapter.go    a server that a module makes of an HTTP API
//
// Read conn.go and call.go first, then the link of interest, then receive.go.
package upstream
