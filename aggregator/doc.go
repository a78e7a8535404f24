// Package aggregator is the MCP server that a host sees.
//
// A host's request takes one of two ways. The handshake, the lists, subscriptions
// and the log level (the control plane) come through an SDK server whose one
// middleware, control.go, answers them from the catalogue. Everything else (the data
// plane) comes as bytes to one switch on the method. This is a call of use_tool,
// there and back; a name stands for every frame, files in brackets:
//
//	Stdio.read                     a line of the host           [host/stdio.go]
//	└ Session.Receive → handleRequest   id and era are checked,
//	  │                            it is in flight              [host/session.go]
//	  └ Aggregator.handle → serve  one switch on the method     [handle.go]
//	    └ callTool                 a tool of ours, or one that a surface shows
//	      └ useTool → callNamed → use   is there such a tool    [discover.go, surface.go]
//	        └ callInner → callUpstream  is its server offered   [surface.go, handle.go]
//	          └ dispatch → forwardedCall.connect   is it ready: if so
//	            │                  no lock is held for long     [forward.go]
//	            └ send             in the era of the upstream
//	              └ Conn.Start     it has an id of ours         [upstream/call.go]
//	                └ lineLink.sendRequest → wire.Writer        [upstream/lines.go]
//
//	Conn.readLines                 a line of the upstream       [upstream/lines.go]
//	└ receive → handleResponse     which call it answers        [upstream/receive.go]
//	  └ finishOwn                  that is over                 [upstream/call.go]
//	    └ forwardedCall.answered → deliver   so is this one     [forward.go]
//	      └ Request.Reply          once                         [host/request.go]
//	        └ Session.answer       under the host's id          [host/inflight.go]
//	          └ write              in order, after initialize   [host/outgoing.go]
//	            └ Stdio.Write → wire.Writer                     [host/stdio.go]
//
// Both ways run on the goroutine that reads, which does not block. A call whose
// server has to be started first, or which waits for one to be listed, moves to its
// own goroutine in between (acquire, retryWhenListed). The params and the result are
// the bytes that came, where they came: both lines are lent until the next one is read,
// so whatever does not go on at once makes them its own first (Request.Own,
// forwardedCall.own). Conn.Start calls answered itself if it cannot send. What a model
// should hear beside the answer, such as the schema that its input did not fit, is
// added in slips.go. A whole request as the arguments of a tool of ours (browser.go,
// proxy.go) is
// a host.Request inside that of the call, and comes back to serve (inner.go).
//
// What upstreams send unasked comes to upstream.go: their lists are fetched again,
// their requests go to the session that has a call in flight there
// (serverrequest.go). Where the eras differ, questions change their form: those to
// a host of the stateless era are the result of its request, which parks the call
// (bridge.go); calls wait while the upstream has no answer to its question for the
// roots (roots.go); and what a result asks of a host that made the handshake becomes
// requests to it (rounds.go), as URLs that a server wants shown first become a result
// (urls.go). What fails for want of a login has its host offered that, and goes on
// after it (login.go). Tasks keep their form within an era, and change their ids (tasks.go);
// they are their user's (taskusers.go). Log levels go by request or by session (level.go).
// announce.go notifies hosts when what they would read has changed. A session may be about
// one server alone (alone.go).
//
// A server is for all sessions, or its entry isolates sessions or principals: own.go
// leads from the upstream of an entry to the one that a session's requests go to.
//
// The package owns sessions (sessions.go), what is in flight between them and
// upstreams, and the texts of failures. It never starts a process (lazy and upstream
// do) and never renders a catalogue (catalog does).
package aggregator
