package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
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
	refused  func(error)  // takes an error in the place of the host; may be nil
	retry    bool         // it certainly did not run the first time
	rounds   int          // how often it was sent again with answers of the host
	opened   bool         // the requestState in params is the upstream's own

	tool      *catalog.Tool              // that is called, nil of anything else
	showInput func(*catalog.Tool) string // shows the schema to a model whose input did not fit; may be nil
	changed   []string                   // what the input was changed in to fit the tool's schema
}

// The states of a forwarded call.
type callState int

const (
	callWaiting callState = iota // for a connection
	callSent                     // the connection has it, or is about to
	callParked                   // the host has questions for an answer, and continues it with its next request (bridge.go)
	callDone                     // answered, cancelled, failed or sent again as another call
)

// A forwardedCall is a host's request on its way to an upstream and back.
type forwardedCall struct {
	upstream.Call
	agg     *Aggregator
	session *session
	peer    *peer
	route   route
	began   time.Time // where somebody observes
	sent    time.Time // the same

	mu        sync.Mutex
	state     callState
	request   *host.Request  // that the host waits for the answer of; while parked the one that has its answer
	conn      *upstream.Conn // while it is at the upstream
	release   func()         // of conn
	cancelled bool
	reason    json.RawMessage // the host's, for cancelling
	resumed   bool            // request is not the first

	questions  []*ask.Question          // of the upstream, without an answer
	asked      map[string]*ask.Question // while parked: those that the host has, by the keys they have there
	rootsAsked *ask.Question            // one of these, for which the call waits and no upstream
	lastKey    int
	kept       []keptNotification // while parked
	keptBytes  int
	dropped    int      // those for which there was no room
	outcome    *outcome // that came while parked
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
	u, err := s.own(to.upstream)
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
	if s.agg.paramsInFlight.Add(size) > maxParamsInFlight {
		full = fmt.Errorf("the arguments of the calls in flight would be more than %d MB", maxParamsInFlight>>20)
	} else if wire.LargeInUse() > maxResultsInFlight {
		full = fmt.Errorf("the large answers under way are more than %d MB", maxResultsInFlight>>20)
	}
	if full != nil {
		s.agg.paramsInFlight.Add(-size)
		return nil, &transports.Failure{Upstream: to.upstream.Server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
			Cause: full, Hint: "call again when other calls have been answered"}
	}
	to.borrowed = r.Method == "tools/call"
	c := &forwardedCall{agg: s.agg, session: s, peer: s.agg.peerOf(to.upstream), route: to, request: r}
	c.Method, c.Params, c.NoToken, c.Peer, c.Done = r.Method, to.params, r.Meta == nil, c, c.answered
	if to.tool != nil {
		c.Timeout = to.tool.Timeout
	}
	if s.agg.observes() {
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
	c.mu.Lock()
	c.state, c.conn, c.release = callSent, conn, release
	c.mu.Unlock()
	if !r.OnCancel(func(reason json.RawMessage) { c.cancel(r, reason) }) {
		c.abort(transports.NotSent)
		return
	}
	c.peer.calls.add(c)
	conn.Start(&c.Call)
	c.withdraw() // if the host's cancel came before conn knew the call
}

// clone copies the params, if they are still part of the host's line.
func (c *forwardedCall) clone() {
	if c.route.borrowed {
		c.route.params = bytes.Clone(c.route.params)
		c.route.borrowed, c.Params = false, c.route.params
	}
}

// cancel ends the call without the upstream's answer: the host wants that of r no
// more, or we end.
func (c *forwardedCall) cancel(r *host.Request, reason json.RawMessage) {
	c.mu.Lock()
	if c.request != r { // the call goes on as that of another request
		c.mu.Unlock()
		return
	}
	c.cancelled, c.reason = true, reason
	parked := c.state == callParked
	c.mu.Unlock()
	if parked {
		c.stopWaiting(reason)
		return
	}
	c.withdraw()
}

// withdraw tells the connection that a cancelled call needs no answer. Whoever
// is told so first, this or answered, ends the call.
func (c *forwardedCall) withdraw() {
	c.mu.Lock()
	conn, reason, ours := c.conn, c.reason, c.cancelled && c.state == callSent
	c.mu.Unlock()
	if ours && conn.Cancel(&c.Call, reason) {
		c.abort(transports.Unknown)
	}
}

// abort ends a call on our side. A request that the host cancelled has ended
// already and gets no answer.
func (c *forwardedCall) abort(outcome transports.Outcome) {
	r, _, _ := c.finish(nil, nil)
	c.fail(r, r.CutOff(c.route.upstream.Server.Name, outcome))
}

// finish gives back what the call held, and returns the request to be answered,
// the connection it was sent on and the state it was in. The outcome of a parked call
// is kept for the request that will continue it.
func (c *forwardedCall) finish(result json.RawMessage, err error) (r *host.Request, conn *upstream.Conn, was callState) {
	c.mu.Lock()
	r, conn, was = c.request, c.conn, c.state
	release, held := c.release, -int64(len(c.route.params))
	var questions []*ask.Question
	if was == callParked {
		c.outcome = &outcome{bytes.Clone(result), err, conn} // it is lent
		held += int64(len(result))
	} else {
		c.state = callDone
		questions, c.questions = c.questions, nil
	}
	c.conn, c.release = nil, nil
	c.mu.Unlock()
	c.agg.paramsInFlight.Add(held)
	c.peer.calls.remove(c)
	release()
	ask.Refuse(questions)
	return r, conn, was
}

func (c *forwardedCall) hostRequest() *host.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request
}

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
	case c.hostRequest().Era == transports.Stateless && !c.wantsLog(params) || !c.session.recipient.WantsLog(params, c.peer.source().Verbose()):
		return
	default:
		params = c.peer.named(c.session, params)
	}
	c.tell(method, params)
}

// Request implements transports.Peer: a server request on the call's own stream
// is for the host that made the call.
func (c *forwardedCall) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	r := c.hostRequest()
	if answer := c.peer.givenRoots(ctx, method); answer != nil {
		return answer
	}
	if r.Era == transports.Stateless && !c.session.replica {
		return c.pose(ctx, method, params)
	}
	return c.peer.askHost(ctx, c.session, r.Peer, method, params)
}
