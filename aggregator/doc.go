// Package aggregator is the MCP server that a host sees.
//
// A host's request takes one of two ways. The handshake, the lists, subscriptions
// and the log level (the control plane) come through an SDK server whose one
// middleware, control.go, answers them from the catalogue. Everything else (the data
// plane) comes as bytes to one switch on the method. This is a call of use_tool, there
// and back, with every frame and its file (frames_unix_test.go compares):
//
//	Stdio.read                          a line of the host             [host/stdio.go]
//	└ Session.Receive                   a request, among all else      [host/session.go]
//	  └ Session.handleRequest           checked; it is in flight       [host/session.go]
//	    └ session.handle                one switch on the method       [handle.go]
//	      └ toolCall.send               the tool, the server, params   [toolcall.go]
//	        └ session.dispatch          within what may be in flight   [forward.go]
//	          └ forwardedCall.send      if its server is ready         [forward.go]
//	            └ Conn.Start            it has an id of ours           [upstream/call.go]
//	              └ lineLink.sendRequest  under our progress token     [upstream/lines.go]
//	                └ Writer.SendRequest  to the upstream              [wire/writer.go]
//
//	Conn.readLines                      a line of the upstream         [upstream/lines.go]
//	└ Conn.receive                      a response, among all else     [upstream/receive.go]
//	  └ Conn.handleResponse             of which call: that is over    [upstream/receive.go]
//	    └ forwardedCall.answered        and so is this one             [answer.go]
//	      └ forwardedCall.Deliver       a result, an error, a question [answer.go]
//	        └ Request.Reply             once                           [host/request.go]
//	          └ Session.answer          under the host's id            [host/inflight.go]
//	            └ Session.write         in order, after initialize     [host/outgoing.go]
//	              └ Stdio.Write         never dropped                  [host/stdio.go]
//	                └ Writer.SendWithin to the host                    [wire/writer.go]
//
// What a call means is read before. readToolCall finds the tool of ours that is called, among
// those of the surfaces (surfaces.go). That answers, or says which tool of an upstream is
// to be called, and how (toolCall). A call in the arguments of another one (inner.go) is a
// toolCall as well. A surface is a package below internal/surface. It
// knows no session, but what surfacecall.go offers.
//
// Both ways run on the goroutine that reads, which does not block. A call whose
// server has to be started first, or which waits for one to be listed, moves to its
// own goroutine in between (admission.go, wait.go). The params and the
// result are the bytes that came, where they came: both lines are lent until the next one
// is read, so whatever does not go on at once makes them its own first (Request.Own,
// forwardedCall.clone). Conn.Start calls answered itself if it cannot send. What a model
// should hear beside the answer, such as the schema that its input did not fit, is
// added in results.go. A whole request as the arguments of a tool of ours (of the surfaces
// browser and proxy) is a host.Request inside that of the call, and comes back to handle.
//
// What upstreams send unasked comes to upstream.go, and goes to the sessions that
// internal/notify finds: their lists are fetched again (internal/listing), their requests go to the session that
// has a call in flight there (serverrequest.go). Where the eras differ, questions change
// their form: those to a host of the stateless era are the result of its request, which parks the call
// (bridge.go), and what it brings back is sealed (internal/ask); calls wait while the
// upstream has no answer to its question for the roots (internal/ask); and what a result asks of a host that made the handshake becomes
// requests to it (rounds.go), as URLs that a server wants shown first become a result
// (urls.go). What fails for want of a login has its host offered that, and goes on
// after it (login.go). Tasks keep their form within an era, and change their ids (tasks.go);
// they are their user's (internal/taskowner). Log levels go by request or by session (level.go).
// lists.go notifies hosts when what they would read has changed. A session may be about
// one server alone (scope.go).
//
// A server is for all sessions, or its entry isolates sessions or principals: own.go
// leads from the upstream of an entry to the one that a session's requests go to.
//
// In a cluster a server may run on another replica: internal/remote asks where, when it is loaded.
// There replica.go serves it to this one, as it is; the way of a call is the same on both.
//
// What a host asks for are methods of its session; what concerns all hosts, or an
// upstream, is the Aggregator's. The package owns sessions (sessions.go), what is in
// flight between them and upstreams, and the texts of failures. It never starts a process
// (lazy and upstream do) and never renders a catalogue (catalog does).
package aggregator
