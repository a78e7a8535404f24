// Package gateway serves hosts over HTTP: the second edge of the session that
// package host has for stdio.
//
//	ServeHTTP → allow           Host, Origin, token: who is it     [access.go]
//	└ route → elsewhere, pass   another replica has it             [replicas.go]
//	  serveMCP → post           streamable HTTP                    [mcp.go]
//	  ├ sessionOf, openSession  the host made the handshake        [session.go]
//	  │ └ Session.Receive       with the stream of this POST
//	  ├ postStateless           a session for this request alone   [stateless.go]
//	  ├ listens                 a place for a stream that only listens [listening.go]
//	  └ respond                 an answer as it is, or as events
//	    └ response.serve        what the stream has, as it comes   [stream.go]
//
//	Session.answer → session.Write → stream.put   does not block
//
// A session writes to streams, and HTTP responses carry them: so nobody waits for a
// host that reads slowly, and one that lost a response can go on with another. What
// belongs to a request goes to the stream of the POST that brought it, all else to
// the one of the session. legacy.go is HTTP with SSE and requests that need no
// handshake, health.go what is asked about servers, end.go the end.
//
// A gateway may be one of several replicas (Options.Replicas): the ids of sessions name the
// one that has them, sealed so that hosts neither read nor make one, and the others pass
// on what is for it, which comes in by ServePassed.
package gateway
