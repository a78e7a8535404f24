// Package gateway serves hosts over HTTP. It is an edge of the sessions of package host.
//
//	ServeHTTP → allow           checks Host, Origin and token         [access.go]
//	└ route → otherReplica    passes it to the replica of the session [replicas.go]
//	  serveMCP → post           streamable HTTP                       [mcp.go]
//	  ├ sessionOf, openSession  for a host of the handshake era       [session.go]
//	  │ └ Session.Receive       with the stream of this POST
//	  ├ postStateless           a session for this request only       [stateless.go]
//	  ├ takePlace               limits the streams that only listen   [listening.go]
//	  └ respond                 with JSON or an event stream
//	    └ response.serve        writes the events of a stream         [response.go]
//
//	Session.answer → session.Write → stream.put   does not block
//
// A session writes to streams, and HTTP responses send what the streams hold. A host that
// reads slowly therefore delays nobody, and a host that lost a response can resume on
// another one. Messages about a request go to the stream of its POST, all others to the
// stream of the session. legacy.go has HTTP+SSE and requests without a handshake, health.go
// the health checks, and end.go the shutdown.
//
// A gateway may be one of several replicas (GatewayOptions.Replicas). The id of a session names its
// replica; it is sealed, so that hosts can neither read nor forge one. The other replicas
// pass requests of the session on to its replica, which serves them with ServePassed.
package gateway
