// Package gateway serves hosts over HTTP. It is an edge of the sessions of package host.
//
// This is a call, to its way out (aggregator/journeys_unix_test.go compares):
//
//	Gateway.ServeHTTP                        checks Host, Origin and token          [gateway/gateway.go]
//	└ Gateway.serve                          the body within the memory budget      [gateway/memory.go]
//	  └ Gateway.route                        by the path                            [gateway/gateway.go]
//	    └ Gateway.serveMCP                   or by the session's replica            [gateway/mcp.go]
//	      └ Gateway.post                     a message, with its session            [gateway/mcp.go]
//	        └ session.receive                answers go to the stream of this POST  [gateway/session.go]
//	          └ Session.Receive              it is a request                        [host/session.go]
//	            └ Session.handleRequest      checks and registers it                [host/session.go]
//	              └ session.handleTogether   with requests that come at once        [aggregator/handle.go]
//	                └ session.handle         one switch on the method               [aggregator/handle.go]
//	                  └ toolCall.send        finds the tool, makes params           [aggregator/toolcall.go]
//	                    └ Env.Dispatch       within the memory budget               [forward/forward.go]
//	                      └ Call.SendOver    if the server is ready                 [forward/forward.go]
//	                        └ Conn.Start     gives it an id                         [upstream/start.go]
//	                          └ lineLink.sendRequest  replaces the progress token   [upstream/lines.go]
//	                            └ Writer.SendRequest  writes it to the upstream     [wire/writer.go]
//
// A request without a session has one for itself (stateless.go). The answer comes by Session.answer to
// stream.put, which does not block; Gateway.respond waits for it, and answers with JSON or an event stream
// (response.go). listening.go limits the streams that only listen, access.go knows who may ask.
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
