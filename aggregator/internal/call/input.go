package call

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// An upstream of the handshake era asks its client during a call. A host of the
// stateless era cannot be asked: it gets the questions as the result of its
// request, and sends the request again with the answers (MCP 2026-07-28, "Multi Round-Trip
// Requests"). Meanwhile the call continues at the upstream, and no request waits for it here.
//
//	the upstream asks ─► Ask ─► askHost ─► the host has its result, and a sealed state
//	the host's next request ─► Continue ─► the upstream has its answers

const (
	// gatherFor is how long the first question waits for others, so that one result
	// has them all.
	gatherFor = 5 * time.Millisecond
	// MaxBuffered and maxBufferedBytes bound the notifications that are kept for a call whose
	// host is asked.
	MaxBuffered      = 64
	maxBufferedBytes = 64 << 10
)

// Ask asks the host a question for which the upstream waits. The function that it returns
// waits for the answer.
func (f *Flight) Ask(ctx context.Context, q *ask.Question) func() (json.RawMessage, error) {
	f.mu.Lock()
	if f.state != sent && f.state != asking {
		f.mu.Unlock()
		return ask.NoHost("the call has ended")
	}
	f.questions = append(f.questions, q)
	first := len(f.questions) == 1 && f.state == sent
	f.mu.Unlock()
	if first {
		f.env.Work.Go(func() {
			time.Sleep(gatherFor)
			f.askHost()
		})
	}
	return func() (json.RawMessage, error) {
		result, err := q.Wait(ctx)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.questions = slices.DeleteFunc(f.questions, func(other *ask.Question) bool { return other == q })
		return result, err
	}
}

// AskFirst asks the host of a call a question before the call is sent. The host's next
// request sends it.
func (f *Flight) AskFirst(q *ask.Question) {
	f.mu.Lock()
	f.questions = []*ask.Question{q}
	f.mu.Unlock()
	f.askHost()
}

// IsAsking reports whether the host has been asked something, or is about to be.
func (f *Flight) IsAsking() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.questions) > 0 || f.state == asking
}

// askHost answers the host's request with the open questions.
func (f *Flight) askHost() {
	f.mu.Lock()
	if f.state != sent && f.state != unsent || len(f.questions) == 0 {
		f.mu.Unlock()
		return
	}
	if f.conn != nil {
		f.conn.PauseTimeout(&f.Call, true)
	}
	f.state = asking
	f.asked = map[string]*ask.Question{}
	var asks [][]byte
	for _, q := range f.questions {
		f.lastKey++
		key := fmt.Sprintf("question-%d", f.lastKey)
		f.asked[key] = q
		// Hosts on go-sdk v1.8.0 fail on a question without params, which roots/list need not have.
		params := cmp.Or(string(q.Params), "{}")
		asks = append(asks, fmt.Appendf(nil, `%q:{"method":%s,"params":%s}`, key, wire.Quote(q.Method), params))
	}
	r := f.request
	id, spare, full := f.env.Waiting.Add(f, f.owner.Upstream(), f.Session.Account, r)
	f.parked = f.env.Budget.Open(f.Session.Account, func() { f.env.Work.Go(func() { f.stopAsking(json.RawMessage(`"too much waits for hosts"`)) }) })
	f.releaseParamsLocked()
	over := f.parkLocked()
	f.mu.Unlock()
	membudget.Shed(over)
	state := f.owner.State(id)
	if full {
		f.env.Log.Warn("too many calls wait for their hosts to answer, one is given up", "upstream", state.Upstream)
		spare.Abandon(nil)
	}
	r.Reply(fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{%s},"requestState":%s}`, bytes.Join(asks, []byte(",")), wire.Quote(f.env.States.Seal(state))), nil)
	f.mu.Lock()
	gone := f.cancelled && f.request == r
	f.mu.Unlock()
	if gone { // it was cancelled before it was answered: no request will continue it
		f.stopAsking(nil)
	}
}

// parkLocked charges what is kept while the host is asked: the request or else its outcome, and
// notifications. It returns what must be shed when f.mu is not held.
func (f *Flight) parkLocked() []*membudget.Reservation {
	kept := f.size
	if f.outcome != nil {
		kept = len(f.outcome.result)
	}
	return f.parked.Set(kept + f.bufferedBytes)
}

// stopAsking abandons the call if its host is asked.
func (f *Flight) stopAsking(reason json.RawMessage) {
	f.env.Waiting.Abandon(reason, func(other *Flight, _ *host.Request) bool { return other == f })
}

// Continue continues a call that was taken out of Env.Waiting as the call of r. Questions
// without a response are asked again.
func (f *Flight) Continue(r *host.Request, responses json.RawMessage) {
	given := map[*ask.Question]json.RawMessage{}
	f.mu.Lock()
	f.request, f.cancelled, f.reason, f.resumed = r, false, nil, true
	f.parked.Set(0)
	for key, response := range wire.Members(responses) {
		name, _ := wire.Text(key)
		if q := f.asked[name]; q != nil && wire.IsObject(response) {
			given[q] = response
		}
	}
	f.questions = slices.DeleteFunc(f.questions, func(q *ask.Question) bool { return given[q] != nil })
	f.passBufferedLocked(r)
	ended, conn := f.outcome, f.conn
	f.outcome = nil
	switch {
	case ended != nil:
		f.state = done
	case conn == nil:
		f.state, f.questions = unsent, nil // Send asks again if necessary
	default:
		f.state = sent
		conn.PauseTimeout(&f.Call, false)
	}
	open := len(f.questions) > 0
	f.mu.Unlock()

	for q, response := range given {
		q.Answer(response, nil)
	}
	switch {
	case ended != nil:
		f.owner.Deliver(r, ended.conn, nil, ended.result, ended.err)
		return
	case conn == nil:
		f.owner.Send(r)
		return
	case !r.OnCancel(func(reason json.RawMessage) { f.Cancel(r, reason) }):
		f.Cancel(r, nil)
	case open:
		f.askHost()
	}
	f.Withdraw() // if the host's cancel came while it was asked
}

// Abandon ends a call that was taken out of Env.Waiting and will not be continued. It is
// cancelled at the upstream, and its questions are refused.
func (f *Flight) Abandon(reason json.RawMessage) {
	f.mu.Lock()
	conn, questions, ended := f.conn, f.questions, f.outcome
	f.state, f.questions, f.asked, f.outcome, f.buffered, f.bufferedBytes = done, nil, nil, nil, nil, 0
	f.parked.Set(0)
	f.mu.Unlock()
	if ended == nil && conn != nil && conn.Cancel(&f.Call, reason) {
		f.Finish(nil, nil)
	}
	ask.FailUnanswered(questions, f.owner.Ended())
}

// A notification is one that came while the host was asked.
type notification struct {
	method string
	params json.RawMessage
}

// NotifyHost sends the host of a call a notification that belongs to it. While the host is asked,
// notifications are kept, up to a bound.
func (f *Flight) NotifyHost(method string, params json.RawMessage) {
	f.mu.Lock()
	r := f.request
	if f.state == asking {
		if f.bufferedBytes += len(params); len(f.buffered) < MaxBuffered && f.bufferedBytes <= maxBufferedBytes {
			f.buffered = append(f.buffered, notification{method, params})
		} else {
			f.bufferedBytes -= len(params)
			f.dropped++
		}
		over := f.parkLocked()
		f.mu.Unlock()
		membudget.Shed(over)
		return
	}
	f.mu.Unlock()
	f.pass(r, method, params)
}

// passBufferedLocked sends the host the kept notifications. It unlocks f.mu meanwhile.
func (f *Flight) passBufferedLocked(r *host.Request) {
	for len(f.buffered) > 0 {
		kept := f.buffered
		f.buffered, f.bufferedBytes = nil, 0
		f.mu.Unlock()
		for _, n := range kept {
			f.pass(r, n.method, n.params)
		}
		f.mu.Lock()
	}
	if f.dropped > 0 {
		f.env.Log.Info("notifications of a call were dropped while its host was asked", "upstream", f.owner.State("").Upstream, "count", f.dropped)
	}
	f.dropped = 0
}

// pass sends the host a notification that belongs to r. A request that continues a
// call may have another progress token than the first, or none.
func (f *Flight) pass(r *host.Request, method string, params json.RawMessage) {
	if method == "notifications/progress" && f.resumed {
		token := wire.Get(r.Meta, "progressToken")
		if token == nil {
			return
		}
		params = wire.Set(params, "progressToken", token)
	}
	r.Peer.Notify(method, params)
}
