package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A route says where a request of a host goes, and how.
type route struct {
	upstream *lazy.Upstream
	params   json.RawMessage
	link     *replicaLink // that the request came by, nil from a host
	borrowed bool         // params are part of the host's line, until the request is handled
	task     bool         // params ask for a task
	asText   bool         // a failure of ours is a tool result, for the model to read
	onError  func(error)  // takes an error in the place of the host; may be nil
	retry    bool         // it certainly did not run the first time
	rounds   int          // how often it was sent again with answers of the host
	opened   bool         // the requestState in params is the upstream's own

	tool      *catalog.Tool              // that is called, nil of anything else
	showInput func(*catalog.Tool) string // shows the schema to a model whose input did not fit; may be nil
	changed   []string                   // what the input was changed in to fit the tool's schema
}

// A forwardedCall is a host's request on its way to an upstream and back.
type forwardedCall struct {
	call.Flight
	agg        *Aggregator
	session    *session
	peer       *peer
	route      route
	rootsAsked *ask.Question    // of its host, for which the call waits and no upstream
	expired    <-chan time.Time // since it first waited for a slot of max_calls: nil where it did not, or may for any time
	began      time.Time        // where somebody observes
	sent       time.Time        // the same
}

// maxParamsInFlight bounds what forwarded calls hold in memory, in bytes of params;
// a call costs about three times as much.
const maxParamsInFlight = 512 << 20

// maxResultsInFlight bounds what answers hold in memory that are being read, or wait
// for a host to read them: over it nothing more is asked for.
const maxResultsInFlight = 512 << 20

// dispatch sends a request to an upstream, starting that if need be, and answers
// it with the upstream's answer.
func (s *session) dispatch(r *host.Request, to route) {
	u, err := s.upstreamFor(to.upstream)
	if err != nil {
		s.fail(r, err, to.asText)
		return
	}
	to.upstream = u
	if r.Era == transports.Stateless {
		var done bool
		if to, done = s.resume(r, to); done {
			return
		}
	}
	c, err := s.newCall(r, to)
	if err != nil {
		s.fail(r, err, to.asText)
		return
	}
	c.send(r, nil, nil)
}

// newCall returns a call that holds its params, unless there are too many in flight.
func (s *session) newCall(r *host.Request, to route) (*forwardedCall, error) {
	size := int64(len(to.params))
	var full error
	if s.agg.calls.Held.Add(size) > maxParamsInFlight {
		full = fmt.Errorf("the arguments of the calls in flight would be more than %d MB", maxParamsInFlight>>20)
	} else if wire.LargeInUse() > maxResultsInFlight {
		full = fmt.Errorf("the large answers under way are more than %d MB", maxResultsInFlight>>20)
	}
	if full != nil {
		s.agg.calls.Held.Add(-size)
		return nil, &transports.Failure{Upstream: to.upstream.Server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
			Cause: full, Hint: "call again when other calls have been answered"}
	}
	to.borrowed = r.Method == "tools/call"
	c := &forwardedCall{agg: s.agg, session: s, peer: s.agg.peerOf(to.upstream), route: to}
	c.Begin(&s.agg.calls, c, s, r, len(to.params))
	c.Method, c.Params, c.NoToken, c.Peer, c.Done = r.Method, to.params, r.Meta == nil, c, c.answered
	if to.tool != nil {
		c.Timeout = to.tool.Timeout
	}
	if s.agg.observation.enabled() {
		c.began = time.Now()
		c.sent = c.began
	}
	return c, nil
}

// send sends the request over conn, which release gives back, if its tool is what the
// session was shown; nil is over the connection that admit returns, now or later.
// Conn.Start may call answered before it returns.
func (c *forwardedCall) send(r *host.Request, conn *upstream.Conn, release func()) {
	waited := conn != nil
	if !waited {
		var admitted bool
		if conn, release, admitted = c.admit(r); !admitted {
			return
		}
	} else if !c.began.IsZero() {
		c.sent = time.Now()
	}
	if err := c.checkTool(waited); err != nil {
		release()
		c.failUnsent(r, err)
		return
	}
	if !conn.Copies() || conn.Era() != r.Era || r.Era == transports.Stateless { // its result may have a state for them
		c.clone()
	}
	params, err := c.translateEra(conn, r.Era)
	if err != nil {
		release()
		c.failUnsent(r, err)
		return
	}
	c.Params = params
	if !c.BeginSending(r, conn, release) {
		return
	}
	c.peer.calls.add(c)
	conn.Start(&c.Call)
	c.Withdraw() // if the host's cancel came before conn knew the call
}

// clone copies the params, if they are still part of the host's line.
func (c *forwardedCall) clone() {
	if c.route.borrowed {
		c.route.params = bytes.Clone(c.route.params)
		c.route.borrowed, c.Params = false, c.route.params
	}
}

// Send implements call.Owner.
func (c *forwardedCall) Send(r *host.Request) { c.send(r, nil, nil) }

// Ended implements call.Owner.
func (c *forwardedCall) Ended() { c.peer.calls.remove(c) }

// Upstream implements call.Owner.
func (c *forwardedCall) Upstream() any { return c.peer }

// Notify implements transports.Peer: the progress of this call, or what came
// on its own stream and so is for its host and no other.
func (c *forwardedCall) Notify(method string, params json.RawMessage) {
	if isAboutUpstream(method) {
		c.peer.Notify(method, params)
		return
	}
	params = c.peer.shownRelation(c.session, params)
	switch {
	case method != "notifications/message":
	case c.HostRequest().Era == transports.Stateless && !c.wantsLog(params) || !c.session.recipient.WantsLog(params, c.peer.source().Verbose()):
		return
	default:
		params = c.peer.named(c.session, params)
	}
	c.Tell(method, params)
}

// Request implements transports.Peer: a server request on the call's own stream
// is for the host that made the call.
func (c *forwardedCall) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	r := c.HostRequest()
	if answer := c.peer.givenRoots(ctx, method); answer != nil {
		return answer
	}
	if r.Era == transports.Stateless && !c.session.replica {
		return c.ask(ctx, method, params)
	}
	return c.peer.askHost(ctx, c.session, r.Peer, method, params)
}
