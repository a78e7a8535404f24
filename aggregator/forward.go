package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

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
	lent     bool        // params are part of the host's line, until the request is handled
	task     bool        // params ask for a task
	asText   bool        // a failure of ours is a tool result, for the model to read
	refused  func(error) // takes an error in the place of the host; may be nil
	retry    bool        // it certainly did not run the first time
	rounds   int         // how often it was sent again with answers of the host
	opened   bool        // the requestState in params is the upstream's own

	tool    *catalog.Tool // that is called, nil of anything else
	explain bool          // what a model gets wrong in the input is explained to it
	changed []string      // what the input was changed in to fit the tool's schema
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

	questions  []*question          // of the upstream, without an answer
	asked      map[string]*question // while parked: those that the host has, by the keys they have there
	rootsAsked *question            // one of these, for which the call waits and no upstream
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
	size := int64(len(to.params))
	var full error
	if s.agg.paramsInFlight.Add(size) > maxParamsInFlight {
		full = fmt.Errorf("the arguments of the calls in flight would be more than %d MB", maxParamsInFlight>>20)
	} else if wire.LargeInUse() > maxResultsInFlight {
		full = fmt.Errorf("the large answers under way are more than %d MB", maxResultsInFlight>>20)
	}
	if full != nil {
		s.agg.paramsInFlight.Add(-size)
		s.fail(r, &transports.Failure{Upstream: to.upstream.Server.Name, Code: transports.CodeOverloaded, Outcome: transports.NotSent,
			Cause: full, Hint: "call again when other calls have been answered"}, to.asText)
		return
	}
	to.lent = r.Method == "tools/call"
	c := &forwardedCall{agg: s.agg, session: s, peer: s.agg.peerOf(to.upstream), route: to, request: r}
	c.Method, c.Params, c.NoToken, c.Peer, c.Done = r.Method, to.params, r.Meta == nil, c, c.answered
	if to.tool != nil {
		c.Timeout = to.tool.Timeout
	}
	if s.agg.observes() {
		c.began = time.Now()
		c.sent = c.began
	}
	c.send(nil, nil)
}

// refuse ends a call that was not sent.
func (c *forwardedCall) refuse(r *host.Request, err error) {
	c.mu.Lock()
	c.state = callDone
	c.mu.Unlock()
	c.agg.paramsInFlight.Add(-int64(len(c.route.params)))
	c.fail(r, err)
}

// fail answers a request whose call has failed, or sends the call once more when its
// host has logged in.
func (c *forwardedCall) fail(r *host.Request, err error) {
	c.observe(nil, nil, err)
	if !wantsLogin(err) {
		c.session.fail(r, err, c.route.asText)
		return
	}
	again := c.again()
	again.params = bytes.Clone(again.params)
	shown := again.params
	if again.opened {
		shown = c.withSealedState(shown)
	}
	c.session.failOrLogIn(r, shown, err, c.route.asText, func() { c.session.dispatch(r, again) })
}

// again returns the route of a call that is sent once more, as a call of its own:
// conn.Start may not have returned yet.
func (c *forwardedCall) again() route {
	again := c.route
	if again.lent {
		again.params = c.Params // a copy, unless Start has not returned yet
	}
	return again
}

// send sends the request over conn, which release gives back, if its tool is what the
// session was shown; nil is over the connection that there is, or when there is one.
// Conn.Start may call answered before it returns.
func (c *forwardedCall) send(conn *upstream.Conn, release func()) {
	r, woken := c.hostRequest(), conn != nil
	if wide := c.isWide(r); wide || c.isOfAnotherEra() {
		if woken {
			release()
		}
		if c.own(); wide {
			c.narrow(r)
		} else {
			c.divert(r)
		}
		return
	}
	if !woken {
		var ready bool
		if !c.route.retry { // a retry runs within the connection that failed
			conn, release, ready = c.route.upstream.Ready()
		}
		if !ready {
			c.sendWhenReady(r)
			return
		}
	}
	if err := c.checkTool(woken); err != nil {
		release()
		c.refuse(r, err)
		return
	}
	if h := c.peer.rootsHold.Load(); h != nil {
		release()
		c.own()
		c.await(h)
		return
	}
	if !conn.Copies() || conn.Era() != r.Era || r.Era == transports.Stateless { // its result may have a state for them
		c.own()
	}
	params, err := c.translateEra(conn, r.Era)
	if err != nil {
		release()
		c.refuse(r, err)
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

// sendWhenReady waits for a connection on a goroutine of its own.
func (c *forwardedCall) sendWhenReady(r *host.Request) {
	c.own()
	c.agg.spawnFor(r, func() {
		conn, release, err := c.session.acquire(r, c.route.upstream, (*lazy.Upstream).Acquire)
		if !c.began.IsZero() {
			c.sent = time.Now()
		}
		if err != nil {
			c.refuse(r, err)
			return
		}
		c.send(conn, release)
	})
}

// own gives the call params of its own, if they are still those of the host's line.
func (c *forwardedCall) own() {
	if c.route.lent {
		c.route.params = bytes.Clone(c.route.params)
		c.route.lent, c.Params = false, c.route.params
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
		c.agg.parked.drop(c, reason)
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
	var questions []*question
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
	refuse(questions)
	return r, conn, was
}

// answered takes the upstream's answer, in the order of the wire.
func (c *forwardedCall) answered(result json.RawMessage, err error) {
	r, conn, was := c.finish(result, err)
	if was != callParked && was != callDone {
		c.deliver(r, conn, c.Outline, result, err)
	}
}

// deliver gives a request the answer to the call, which came over conn. outline is of
// the result, and may be nil.
func (c *forwardedCall) deliver(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage, err error) {
	defer replyPanic(r)
	switch {
	case err == nil && r.Era == transports.Handshake && conn.Era() == transports.Stateless && mayAskForInput(r.Method) && wantsInput(outline, result):
		c.nextRound(r, result)
	case err == nil:
		if conn.ServerInfo().Has("resources") {
			c.peer.seenURIs.addFrom(result)
		}
		result, stored, err := c.shownResult(r, conn, outline, result)
		if err != nil {
			c.fail(r, err)
			return
		}
		c.observe(outline, result, nil)
		if stored != nil {
			c.agg.replyTask(r, result, stored)
			return
		}
		result = c.explained(outline, result)
		if t := c.route.tool; t != nil && t.Shaped() && wire.IsObject(result) {
			c.replyShaped(r, t, result)
			return
		}
		r.Reply(result, nil)
	case !c.route.retry && isRepeatable(err, conn):
		again := c.again()
		again.retry = true
		c.session.dispatch(r, again)
	case c.route.refused != nil:
		c.route.refused(err)
	default:
		if asks := urlsFirst(r, c.route.params, conn, err); asks != nil {
			r.Reply(asks, nil)
			return
		}
		c.fail(r, shownError(r, conn, c.explainedError(err)))
	}
}

// shownError returns an upstream's error as the era of the host has it: that there is
// no such resource had a code of its own before the stateless one.
func shownError(r *host.Request, conn *upstream.Conn, err error) error {
	var rpc *wire.Error
	if r.Era != transports.Stateless || conn.Era() == transports.Stateless || r.Method != "resources/read" || !errors.As(err, &rpc) || rpc.Code != codeResourceNotFound {
		return err
	}
	shown := *rpc
	if shown.Code = wire.CodeInvalidParams; rpc.Raw != nil {
		shown.Raw = wire.Set(rpc.Raw, "code", strconv.AppendInt(nil, shown.Code, 10))
	}
	return &shown
}

// isRepeatable reports whether a call certainly did not run because conn takes no
// more. Of calls that were under way when a session was forgotten, that is so only
// of those which were refused for it.
func isRepeatable(err error, conn *upstream.Conn) bool {
	var failure *transports.Failure
	if !errors.As(err, &failure) || failure.Outcome != transports.NotSent {
		return false
	}
	lost := conn.Err()
	return lost != nil && (!errors.Is(lost, upstream.ErrSessionLost) || errors.Is(err, upstream.ErrSessionLost))
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
	case c.hostRequest().Era == transports.Stateless && !c.wantsLog(params) || !c.session.wantsLog(params, c.peer.verbose()):
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

// translateEra returns params as the era of an upstream wants them. What a host
// of the handshake era said once, the stateless one says with every request.
func (c *forwardedCall) translateEra(conn *upstream.Conn, era transports.Era) (json.RawMessage, error) {
	s, params := c.session, c.route.params
	if era == conn.Era() {
		return params, nil
	}
	if era == transports.Stateless {
		if wire.Get(params, "requestState") != nil { // such an upstream gave none
			return nil, staleState()
		}
		for _, name := range []string{"inputResponses", "task"} { // the host knows no such task
			if wire.Get(params, name) != nil {
				params = wire.Delete(params, name)
			}
		}
		return transports.DeleteMeta(params, transports.EraMeta...), nil
	}
	if c.route.rounds == 0 && mayAskForInput(c.Method) {
		state, answers, err := wire.GetStrict(params, "requestState", "inputResponses")
		if err != nil || state != nil { // it was given none
			return nil, staleState()
		}
		if answers != nil {
			params = wire.Delete(params, "inputResponses")
		}
	}
	if able := askable(s.declaration().capabilities); able != nil {
		params = transports.SetMeta(params, transports.MetaCapabilities, able)
	}
	if level := s.logLevel(); level.params != nil {
		params = transports.SetMeta(params, transports.MetaLogLevel, wire.Get(level.params, "level"))
	}
	return params, nil
}

// fail answers a request that could not be forwarded. An upstream's own error
// passes as it is.
func (s *session) fail(r *host.Request, err error, asText bool) {
	s.observeRefusal(r, err)
	err = s.reserved(err)
	failure, isFailure := errors.AsType[*transports.Failure](err)
	rpc, isTheirs := errors.AsType[*wire.Error](err)
	switch {
	case isTheirs && !isFailure:
		r.Reply(nil, rpc)
	case asText:
		r.Reply(errorResult(s.inWords(err)), nil)
	case isFailure:
		r.Reply(nil, failure.Wire())
	default:
		r.Reply(nil, &wire.Error{Code: transports.CodeShuttingDown, Message: err.Error()})
	}
}

// explain puts a failure in words for a model: what failed, whether the call
// ran, what to do, and as much of the cause as its host may know.
func (s *session) explain(err error) string { return s.inWords(s.reserved(err)) }

func (s *session) inWords(err error) string {
	var evicted *lazy.EvictedError
	var failure *transports.Failure
	switch {
	case errors.As(err, &evicted) && errors.As(evicted.Err, &failure):
		return failure.Text() + fmt.Sprintf("\n%s failed to load after %d attempts and will no longer be offered.", evicted.Upstream, evicted.Attempts) + readmitted
	case errors.As(err, &failure):
		said := *failure
		if info, ok := s.agg.catalog.View().Server(said.Upstream); ok {
			said.Upstream = info.Called
		}
		text := said.Text()
		if failure.Code == transports.CodeBackingOff && s.hasLoadTool() {
			text += fmt.Sprintf("\nload_mcp {\"mcp_name\": %s} tries it at once.", wire.Quote(failure.Upstream))
		}
		return text
	}
	return err.Error()
}
