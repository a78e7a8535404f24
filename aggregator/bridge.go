package aggregator

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	// parkedFor is how long a call waits for its host's next request. People fill
	// in forms.
	parkedFor = 10 * time.Minute
	// maxParked is how many calls of one upstream may be parked. The oldest is given
	// up for one more, so that questions nobody answers do not take the place of
	// others: an upstream may ask 256 at a time.
	maxParked = 128
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
	id, oldest := c.agg.parked.add(c, r)
	c.mu.Unlock()
	if oldest != nil {
		c.agg.log.Warn("too many calls wait for their hosts to answer, the oldest is given up", "upstream", c.route.upstream.Server.Name)
		oldest.abandon(nil)
	}
	r.Reply(fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":%s,"requestState":%s}`, asks, wire.Quote(c.newState(id, nil))), nil)
	c.mu.Lock()
	gone := c.cancelled && c.request == r
	c.mu.Unlock()
	if gone { // it was cancelled before it was answered, and nothing continues it
		c.agg.parked.drop(c, nil)
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

// abandon ends a parked call that nobody will continue, after it was taken out of
// the table: the upstream is told so, and its questions are refused.
func (c *forwardedCall) abandon(reason json.RawMessage) {
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

// parkedCalls are the calls that wait for the next request of their hosts, by the
// id in the state that the host has. Each is taken once: by that request, by its
// deadline, by the end of its session, or by a call for which there was no room.
type parkedCalls struct {
	mu   sync.Mutex
	byID map[string]*parkedCall
}

type parkedCall struct {
	*forwardedCall
	by       *host.Request // which was answered with questions
	since    time.Time
	deadline *time.Timer
}

// add gives a call an id, whose questions answer r. oldest is one of the same upstream that had to make room
// for it; nil usually.
func (p *parkedCalls) add(c *forwardedCall, r *host.Request) (id string, oldest *forwardedCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byID == nil {
		p.byID = map[string]*parkedCall{}
	}
	var others []string
	for id, other := range p.byID {
		if other.peer == c.peer {
			others = append(others, id)
		}
	}
	if len(others) >= maxParked {
		first := slices.MinFunc(others, func(a, b string) int { return cmp.Compare(p.byID[a].since.UnixNano(), p.byID[b].since.UnixNano()) })
		oldest = p.takeLocked(first)
	}
	id = rand.Text()
	p.byID[id] = &parkedCall{c, r, time.Now(), time.AfterFunc(parkedFor, func() {
		c.agg.work.Go(func() {
			if c := p.take(id); c != nil {
				c.abandon(json.RawMessage(`"the host did not answer"`))
			}
		})
	})}
	return id, oldest
}

// take returns the call of an id and forgets it; nil if there is none.
func (p *parkedCalls) take(id string) *forwardedCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.takeLocked(id)
}

func (p *parkedCalls) takeLocked(id string) *forwardedCall {
	found := p.byID[id]
	if found == nil {
		return nil
	}
	found.deadline.Stop()
	delete(p.byID, id)
	return found.forwardedCall
}

// forgetState gives up what a result, which the host will not see, would have continued.
func (a *Aggregator) forgetState(result json.RawMessage) {
	text, _ := wire.Text(wire.Get(result, "requestState"))
	state, err := a.openState(strings.TrimPrefix(text, statePrefix))
	if err != nil {
		return
	}
	a.issued.take(stateUser{principal{state.Principal}, state.Upstream}, state.Call)
	if c := a.parked.take(state.Call); c != nil {
		c.abandon(nil)
	}
}

// drop gives up a call, if it is parked.
func (p *parkedCalls) drop(c *forwardedCall, reason json.RawMessage) {
	p.dropAll(reason, func(other *parkedCall) bool { return other.forwardedCall == c })
}

// dropAll gives up those of the parked calls that which picks.
func (p *parkedCalls) dropAll(reason json.RawMessage, which func(*parkedCall) bool) {
	var dropped []*forwardedCall
	p.mu.Lock()
	for id, c := range p.byID {
		if which(c) {
			dropped = append(dropped, p.takeLocked(id))
		}
	}
	p.mu.Unlock()
	for _, c := range dropped {
		c.abandon(reason)
	}
}
