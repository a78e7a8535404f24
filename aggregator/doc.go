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
//	        └ Env.Dispatch              within what may be in flight   [forward/forward.go]
//	          └ Call.SendOver           if its server is ready         [forward/forward.go]
//	            └ Conn.Start            it has an id of ours           [upstream/start.go]
//	              └ lineLink.sendRequest  under our progress token     [upstream/lines.go]
//	                └ Writer.SendRequest  to the upstream              [wire/writer.go]
//
//	Conn.readLines                      a line of the upstream         [upstream/lines.go]
//	└ Conn.receive                      a response, among all else     [upstream/receive.go]
//	  └ Conn.handleResponse             of which call: that is over    [upstream/receive.go]
//	    └ Call.Answered                 and so is this one             [forward/answer.go]
//	      └ Call.Deliver                a result, an error, a question [forward/answer.go]
//	        └ Request.Reply             once                           [host/request.go]
//	          └ Session.answer          under the host's id            [host/inflight.go]
//	            └ Session.write         in order, after initialize     [host/outgoing.go]
//	              └ Stdio.Write         never dropped                  [host/stdio.go]
//	                └ Writer.SendWithin to the host                    [wire/writer.go]
//
// What a call means is read before. request.toolCall finds the tool of ours that is called, among
// those of the surfaces (internal/exposed). That answers, or says which tool of an upstream is
// to be called, and how (toolCall). A call in the arguments of another one (inner.go) is a
// toolCall as well. A surface is a package below internal/surface. It
// knows no session, but what surfacecall.go offers.
//
// Both ways run on the goroutine that reads, which does not block. A call that has to wait,
// for the start of its server, for an answer about the roots or for calls before it, joins
// the queue of the server (internal/forward, admission.go) and waits on a goroutine of its
// own; so does a request for what no server is known to have (wait.go), which keeps its place
// in the queue of the server that is started for it. The lines of params
// and results are borrowed until the next one is read: code that keeps a part copies it first
// (Request.CopyParams, Call.clone). Conn.Start calls Answered itself if it cannot send. What a model
// should hear beside the answer, such as the schema that its input did not fit, is added in
// results.go. A whole request as the arguments of a tool of ours (of the surfaces browser and
// proxy) is a host.Request inside that of the call, and comes back to handle.
//
// What upstreams send unasked comes to internal/fleet:
//
//   - notifications go to the sessions that internal/notify finds
//   - changes of lists have these fetched again (internal/listing), and hosts notified
//     (sessions.go)
//   - server requests go to the session that has a call in flight there; calls wait while
//     one for the roots has no answer (internal/ask)
//
// Where the eras of host and upstream differ, questions change their form. Those to a host of
// the stateless era are the result of its request (internal/call), and it brings back a sealed
// state (internal/forward, input.go). Those in a result for a host of the handshake era become
// requests to it (rounds.go there). URLs that a server wants shown first become a result
// (rounds.go there). A request that fails for want of a login has its host offered one (login.go).
//
// Tasks keep their form within an era, and change their ids (internal/task); they are their
// user's (internal/taskowner). Log levels go by request or by session. A session may be about
// one server alone (internal/scope). A server is for all sessions, or has an upstream for each
// session, user, set of roots or era (internal/fleet, owner.go). What is known of a
// server outlives its upstream, which a new config may replace (record.go there).
//
// In a cluster a server may run on another replica: internal/remote asks where, when it is
// loaded. There replica.go serves it to this one; its calls are admitted as those of hosts.
//
// A session is what is known of its host (internal/sessions), what that sees (internal/scope),
// and the aggregator. Packages below are handed the first part. What concerns all hosts is
// the Aggregator's. The package owns the method switch, the control plane, the tools of ours,
// what waits for lists, and the texts of failures. It never starts a process
// (lazy and upstream do) and never renders a catalogue (catalog does).
//
// Our own words:
//
//	host         a client that is connected to us
//	upstream     a server that we are a client of, for all hosts or for one owner
//	session      one host, for as long as it is connected
//	principal    the user that a session belongs to
//	owner        whom an upstream is for: a session, a principal, a set of roots, an era
//	era          handshake (initialize) or stateless (since MCP 2026-07-28)
//	control      of the handshake, lists and subscriptions; all else is the data plane
//	surface      the tools of ours that a host is shown, in the place of those of upstreams
//	view         what a session sees of the catalogue
//	route        where a request goes, and how
//	admission    the step that lets a call go, or has it wait in the queue of its server
//	gate         keeps calls from an upstream that has asked for the roots
//	flight       a call between the host's request and the upstream's answer
//	input        what a result asks of a host of the stateless era
//	round        a request that is sent again with a host's answers
//	record       what is known of a server for an owner, in this run
//	placement    where in a cluster a server runs
//	fleet        the upstreams of a run, with what is known of each
//	link         the session of another replica, which uses a server that runs here
//	cork         keeps what is written until all messages of one read were handled
package aggregator
