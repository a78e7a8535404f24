package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// An upstream of the handshake era asks its client in the middle of a call. A host
// of the stateless era cannot be asked: it gets the questions as the result of its
// request, and sends that again with the answers (MCP 2026-07-28, "Multi Round-Trip
// Requests"). In between the call is parked: it goes on at the upstream, and nobody
// waits for it here.
//
//	the upstream asks ─► pose ─► park ─► the host has its result, and a sealed state
//	the host's next request ─► dispatch ─► resume ─► the upstream has its answers

const (
	// gatherFor is how long the first question waits for others, so that they go
	// to the host in one result.
	gatherFor = 5 * time.Millisecond
	// What an upstream says of a parked call is kept within these bounds.
	maxKept      = 64
	maxKeptBytes = 64 << 10
)

// pose has the host of a call in flight asked something, with the result of its
// request. The function it returns waits for the answer.
func (c *forwardedCall) pose(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	if lacking := c.lacks(method, params); lacking != "" {
		return ask.Refused("%s", lacking)
	}
	q := ask.NewQuestion(method, params)
	if method == "roots/list" {
		return c.peer.rootsAsked.Request(ctx, q, func(ctx context.Context) func() (json.RawMessage, error) { return c.add(ctx, q) })
	}
	return c.add(ctx, q)
}

// add has the host asked a question that the upstream waits for.
func (c *forwardedCall) add(ctx context.Context, q *ask.Question) func() (json.RawMessage, error) {
	c.mu.Lock()
	if c.state != callSent && c.state != callParked {
		c.mu.Unlock()
		return ask.Refused("the call has ended")
	}
	c.questions = append(c.questions, q)
	first := len(c.questions) == 1 && c.state == callSent
	c.mu.Unlock()
	if first {
		c.agg.work.Go(func() {
			time.Sleep(gatherFor)
			c.park()
		})
	}
	return func() (json.RawMessage, error) {
		result, err := q.Wait(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.questions = slices.DeleteFunc(c.questions, func(other *ask.Question) bool { return other == q })
		return result, err
	}
}

// lacks says why the host of a call cannot be asked something, "" if it can.
func (c *forwardedCall) lacks(method string, params json.RawMessage) string {
	r := c.hostRequest()
	switch {
	case r.Era == transports.Handshake, c.session.replica:
		return ask.Lacks(c.session.declaration().capabilities, method, params)
	case !ask.MayNeedInput(r.Method):
		return fmt.Sprintf("the host speaks %s, in which %s cannot ask it anything", transports.StatelessVersion, r.Method)
	case ask.Capability(method) == "":
		return fmt.Sprintf("the host speaks %s, in which it cannot be asked for %s", transports.StatelessVersion, method)
	}
	return ask.Lacks(wire.Get(r.Meta, transports.MetaCapabilities), method, params)
}

// isAsking reports whether the host has been asked something, or is about to be.
func (c *forwardedCall) isAsking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.questions) > 0 || c.state == callParked
}

// park answers the host's request with the questions there are.
func (c *forwardedCall) park() {
	c.mu.Lock()
	if c.state != callSent && c.state != callWaiting || len(c.questions) == 0 {
		c.mu.Unlock()
		return
	}
	if c.conn != nil {
		c.conn.HoldTimeout(&c.Call, true)
	}
	c.state = callParked
	c.asked = map[string]*ask.Question{}
	asks := []byte(`{`)
	for i, q := range c.questions {
		if i > 0 {
			asks = append(asks, ',')
		}
		c.lastKey++
		key := fmt.Sprintf("question-%d", c.lastKey)
		c.asked[key] = q
		asks = fmt.Appendf(asks, `%q:{"method":%s`, key, wire.Quote(q.Method))
		if q.Params != nil {
			asks = append(append(asks, `,"params":`...), q.Params...)
		}
		asks = append(asks, '}')
	}
	asks = append(asks, '}')
	r := c.request
	id, oldest, full := c.agg.waiting.Add(c, c.peer, r)
	c.mu.Unlock()
	if full {
		c.agg.log.Warn("too many calls wait for their hosts to answer, the oldest is given up", "upstream", c.route.upstream.Server.Name)
		oldest.Abandon(nil)
	}
	r.Reply(fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":%s,"requestState":%s}`, asks, wire.Quote(c.agg.states.Seal(c.newState(id)))), nil)
	c.mu.Lock()
	gone := c.cancelled && c.request == r
	c.mu.Unlock()
	if gone { // it was cancelled before it was answered, and nothing continues it
		c.stopWaiting(nil)
	}
}

// parkWith parks a call that was not sent, with a question for its host.
func (c *forwardedCall) parkWith(q *ask.Question) {
	c.mu.Lock()
	c.questions = []*ask.Question{q}
	c.mu.Unlock()
	c.park()
}

// continueWith goes on with a call that was taken out of the table, as that of r.
// What is not answered is asked again.
func (c *forwardedCall) continueWith(r *host.Request, responses json.RawMessage) {
	given := map[*ask.Question]json.RawMessage{}
	c.mu.Lock()
	c.request, c.cancelled, c.reason, c.resumed = r, false, nil, true
	for key, response := range wire.Members(responses) {
		name, _ := wire.Text(key)
		if q := c.asked[name]; q != nil && wire.IsObject(response) {
			given[q] = response
		}
	}
	c.questions = slices.DeleteFunc(c.questions, func(q *ask.Question) bool { return given[q] != nil })
	for len(c.kept) > 0 {
		kept := c.kept
		c.kept, c.keptBytes = nil, 0
		c.mu.Unlock()
		for _, n := range kept {
			c.pass(r, n.method, n.params)
		}
		c.mu.Lock()
	}
	if c.dropped > 0 {
		c.agg.log.Info("notifications of a call were dropped while its host was asked", "upstream", c.route.upstream.Server.Name, "count", c.dropped)
	}
	ended, conn := c.outcome, c.conn
	c.dropped, c.outcome = 0, nil
	switch {
	case ended != nil:
		c.state = callDone
	case conn == nil:
		c.state, c.questions = callWaiting, nil // what is still to be asked, send finds out
	default:
		c.state = callSent
		conn.HoldTimeout(&c.Call, false)
	}
	open := len(c.questions) > 0
	c.mu.Unlock()

	for q, response := range given {
		q.Answer(response, nil)
	}
	switch {
	case ended != nil:
		c.agg.paramsInFlight.Add(-int64(len(ended.result)))
		c.deliver(r, ended.conn, nil, ended.result, ended.err)
		return
	case conn == nil:
		c.send(r, nil, nil)
		return
	case !r.OnCancel(func(reason json.RawMessage) { c.cancel(r, reason) }):
		c.cancel(r, nil)
	case open:
		c.park()
	}
	c.withdraw() // if the host's cancel came while the call was parked
}

// Abandon ends a call that waits for input that nobody will continue, after it was taken out of
// the table: the upstream is told so, and its questions are refused.
func (c *forwardedCall) Abandon(reason json.RawMessage) {
	c.mu.Lock()
	conn, questions, ended := c.conn, c.questions, c.outcome
	c.state, c.questions, c.asked, c.outcome, c.kept = callDone, nil, nil, nil, nil
	c.mu.Unlock()
	switch {
	case ended != nil:
		c.agg.paramsInFlight.Add(-int64(len(ended.result)))
	case conn == nil: // it was never sent
		c.agg.paramsInFlight.Add(-int64(len(c.route.params)))
	case conn.Cancel(&c.Call, reason):
		c.finish(nil, nil)
	}
	ask.Refuse(questions)
}

// An outcome is the answer to a call that came while the call was parked.
type outcome struct {
	result json.RawMessage
	err    error
	conn   *upstream.Conn
}

// A keptNotification is one that came while the call was parked.
type keptNotification struct {
	method string
	params json.RawMessage
}

// tell sends the host of a call what belongs to it. While the call is parked that is
// kept, within bounds.
func (c *forwardedCall) tell(method string, params json.RawMessage) {
	c.mu.Lock()
	r := c.request
	if c.state == callParked {
		if c.keptBytes += len(params); len(c.kept) < maxKept && c.keptBytes <= maxKeptBytes {
			c.kept = append(c.kept, keptNotification{method, params})
		} else {
			c.keptBytes -= len(params)
			c.dropped++
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	c.pass(r, method, params)
}

// pass sends the host a notification that belongs to r. A request that continues a
// call may have another progress token than the first, or none.
func (c *forwardedCall) pass(r *host.Request, method string, params json.RawMessage) {
	if r.Peer == nil {
		return
	}
	if method == "notifications/progress" && c.resumed {
		token := wire.Get(r.Meta, "progressToken")
		if token == nil {
			return
		}
		params = wire.Set(params, "progressToken", token)
	}
	r.Peer.Notify(method, params)
}

// newState says what a request continues: a call that waits for input, or with the state of
// an upstream a call of the same params.
func (c *forwardedCall) newState(id string) ask.State {
	return ask.State{Call: id, Principal: c.session.principal.name, Upstream: c.route.upstream.Server.Name, Request: ask.Digest(c.Method, c.route.params)}
}

// stopWaiting gives the call up, if it waits for input.
func (c *forwardedCall) stopWaiting(reason json.RawMessage) {
	c.agg.waiting.Abandon(reason, func(other *forwardedCall, _ *host.Request) bool { return other == c })
}

// resume takes a request that brings a requestState, and reports whether it is done
// with. If not it goes on to its upstream, with that upstream's own state in the place
// of the sealed one.
func (s *session) resume(r *host.Request, to route) (_ route, done bool) {
	if to.opened || !ask.MayNeedInput(r.Method) {
		return to, false
	}
	raw, responses, err := wire.GetStrict(to.params, "requestState", "inputResponses")
	if err != nil {
		r.Reply(nil, invalid("%s: %v", r.Method, err))
		return to, true
	}
	if raw == nil {
		return to, false
	}
	text, _ := wire.Text(raw)
	state, ours := s.agg.states.Open(text)
	elsewhere := state.Upstream != to.upstream.Server.Name
	switch {
	case ours && elsewhere && to.refused != nil: // its upstream is among those that come next
		to.refused(ask.Stale())
		return to, true
	case !ours, elsewhere, state.Principal != s.principal.name, state.Request != ask.Digest(r.Method, to.params), time.Now().Unix() > state.Expires:
		r.Reply(nil, ask.Stale())
		return to, true
	}
	if state.State != nil && s.agg.states.Take(state) {
		to.params, to.opened = wire.Set(to.params, "requestState", state.State), true
		return to, false
	}
	if c, ok := s.agg.waiting.Take(state.Call); ok {
		c.continueWith(r, bytes.Clone(responses)) // the line is reused
	} else {
		r.Reply(nil, ask.Stale())
	}
	return to, true
}

// forgetState gives up what a result, which the host will not see, would have continued.
func (a *Aggregator) forgetState(result json.RawMessage) {
	text, _ := wire.Text(wire.Get(result, "requestState"))
	state, ours := a.states.Open(text)
	if !ours {
		return
	}
	a.states.Take(state)
	if c, ok := a.waiting.Take(state.Call); ok {
		c.Abandon(nil)
	}
}

// OwnerOf returns the replica that has what a requestState of a host continues, as its
// Options.Replica: a call, or the offer of a login. ok is false of a state that no
// replica of this cluster made, and where there is but one.
func (a *Aggregator) OwnerOf(text string) (replica string, ok bool) { return a.states.OwnerOf(text) }
