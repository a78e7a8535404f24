// Package aggregator is the MCP server that a host sees.
//
// A host's request takes one of two ways. The handshake, the lists, subscriptions
// and the log level (the control plane) come through an SDK server whose one
// middleware, control.go, answers them from the catalogue. Everything else (the data
// plane) comes as bytes to one switch on the method. This is a call of use_tool, there
// and back, with every frame and its file (frames_unix_test.go compares):
//
//	Stdio.read                          a line of the host             [host/stdio.go]
//	└ Session.Receive                   it is a request                [host/session.go]
//	  └ Session.handleRequest           checks and registers it        [host/session.go]
//	    └ session.handle                one switch on the method       [aggregator/handle.go]
//	      └ toolCall.send               finds the tool, makes params   [aggregator/toolcall.go]
//	        └ Env.Dispatch              within the memory budget       [forward/forward.go]
//	          └ Call.SendOver           if the server is ready         [forward/forward.go]
//	            └ Conn.Start            gives it an id                 [upstream/start.go]
//	              └ lineLink.sendRequest  replaces the progress token  [upstream/lines.go]
//	                └ Writer.SendRequest  writes it to the upstream    [wire/writer.go]
//
//	Conn.readLines                      a line of the upstream         [upstream/lines.go]
//	└ Conn.receive                      it is a response               [upstream/receive.go]
//	  └ Conn.handleResponse             finds and removes its call     [upstream/receive.go]
//	    └ Call.Answered                 ends the call                  [forward/answer.go]
//	      └ Call.Deliver                a result, an error, a question [forward/answer.go]
//	        └ Request.Reply             answers the request once       [host/request.go]
//	          └ Session.answer          restores the host's id         [host/inflight.go]
//	            └ Session.write         in order, after initialize     [host/outgoing.go]
//	              └ Stdio.Write         is never dropped               [host/stdio.go]
//	                └ Writer.SendWithin writes it to the host          [wire/writer.go]
//
// Resources, templates and prompts keep their names. catalog/names says to which server each belongs, and
// fleet.Names adds what the results of a session have shown. Requests go to that server only
// (route.go), and results are translated where a URI is another server's too.
//
// Before that, request.toolCall reads which tool of ours is called, among those of the surfaces
// (internal/exposed). That tool answers by itself, or names the upstream's tool to call
// (toolCall). A call in the arguments of another one is a toolCall too (inner.go). A surface is
// a package of its own, discover and direct in internal, all others in modules. It knows a session
// only through surfacesession.go.
//
// Both ways run on the goroutine that reads, which does not block. A call waits on its own
// goroutine, in the queue of its server (internal/forward, admission.go), for the start of the
// server, for an answer about the roots, or for earlier calls. A request for a name that no
// server is known to have waits too (wait.go), with a place in the queue of the server that is
// started for it. The lines of params and results are valid until the next line is read: code
// that keeps a part copies it first (Request.CopyParams, Call.clone). Conn.Start calls Answered
// itself if it cannot send. Notes for the model, such as the schema that its input did not fit,
// are added in results.go. A whole request in the arguments of a tool of ours (surfaces browser
// and proxy) is a host.Request inside that of the call, and comes back to handle.
//
// Messages that upstreams send unasked come to internal/fleet:
//
//   - notifications go to the sessions that internal/notify finds
//   - after a change of a list it is fetched again (internal/listing), and hosts are notified
//     (sessions.go)
//   - server requests go to the session that has a call in flight there; calls wait while
//     a request for the roots is open (internal/ask)
//
// If the eras of host and upstream differ, questions change their form. For a host of the
// stateless era they become the result of its request (internal/call), and its next request
// has a sealed state (internal/forward, input.go). URLs that a server requires its user to
// visit become a result too (rounds.go there). For a host of the handshake era the questions
// in a result become requests to it (rounds.go there). A host whose request fails because of
// a missing login is offered the login (login.go).
//
// Tasks keep their form within an era, and change their ids (internal/task). They belong to a
// user (internal/taskowner). Log levels belong to a request or to a session. A session may be
// about one server (internal/scope). A server is shared by all sessions, or has an upstream for
// each session, user, set of roots or era (internal/fleet, owner.go). The record of a server
// outlives its upstream, which a new config may replace (record.go there).
//
// In a cluster a server may run on another replica: internal/remote asks where, when it is
// loaded. That replica serves it to this one (replica.go), and admits its calls like those of
// hosts.
//
// A session has the state of its host (internal/sessions), its scope (internal/scope) and the
// aggregator. Packages below get only the first part. State about all hosts is in the
// Aggregator. The package has the method switch, the control plane, the tools of ours, the
// waiting for lists, and the texts of failures. It never starts a process (lazy and upstream
// do) and never renders a catalogue (catalog does).
//
// Our own words:
//
//	host         a client that is connected to us
//	upstream     a server to which we are a client, for all hosts or for one owner
//	session      the connection of one host, with its state
//	principal    the user that a session belongs to
//	owner        the session, principal, set of roots or era that an upstream is for
//	era          handshake (initialize) or stateless (since MCP 2026-07-28)
//	control      of the handshake, lists and subscriptions; everything else is the data plane
//	surface      tools of ours that hosts are shown in place of the upstreams' tools
//	view         the part of the catalogue that a session sees
//	route        the destination of a request, with options
//	admission    the step that sends a call, or lets it wait in the queue of its server
//	gate         holds back calls to an upstream that has asked for the roots
//	flight       a call between the host's request and the upstream's answer
//	input        the questions in a result for a host of the stateless era
//	round        a request that is sent again with a host's answers
//	record       the state of a server for an owner, in this run
//	placement    where in a cluster a server runs
//	fleet        the upstreams of a run, with their state
//	link         the session of another replica, which uses a server that runs here
//	cork         holds back writes until all messages of one read were handled
package aggregator
