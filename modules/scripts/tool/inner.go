package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

const (
	// gatherFor is how long a question waits for others if no call is in flight, so that they go to
	// the host in one result; gatherLonger is the same if calls are in flight.
	gatherFor    = 5 * time.Millisecond
	gatherLonger = time.Second
)

// An inner is a request of a script.
type inner struct {
	ctx    context.Context
	number int
	method string
	params json.RawMessage
	send   func(by *caller, r *host.Request)
	done   chan answer // has room for one

	// Guarded by the mutex of the run.
	request *host.Request   // nil before it is sent
	by      *caller         // of request
	asked   json.RawMessage // the result that asks the host; nil if it does not
	restart func()          // restarts the clock, which is paused while the host is asked
}

type answer struct {
	result json.RawMessage
	err    error
}

// do makes a request inside that of the host, and returns its answer.
func (run *running) do(ctx context.Context, method string, params json.RawMessage, send func(by *caller, r *host.Request)) (json.RawMessage, error) {
	in := &inner{ctx: ctx, method: method, params: params, send: send, done: make(chan answer, 1)}
	run.mu.Lock()
	run.last++
	in.number = run.last
	run.mu.Unlock()
	run.begin(in, params)
	select {
	case a := <-in.done:
		return a.result, a.err
	case <-ctx.Done():
	}
	run.mu.Lock()
	r := in.request
	run.mu.Unlock()
	if r != nil {
		r.Cancel(nil)
	}
	return nil, ctx.Err()
}

// begin sends a request, or queues it until the host has answered pending questions.
func (run *running) begin(in *inner, params json.RawMessage) {
	run.mu.Lock()
	by := run.by
	if by == nil {
		run.queued = append(run.queued, in)
		run.mu.Unlock()
		return
	}
	run.inFlight++
	if in.asked = nil; in.restart != nil {
		in.restart()
		in.restart = nil
	}
	params = bytes.Clone(params) // sending may modify them
	if by.meta != nil {
		params = wire.Set(params, "_meta", by.meta)
	}
	r := by.HostRequest().Inner(in.method, params, func(result json.RawMessage, err error) { run.answered(in, bytes.Clone(result), err) })
	r.Peer, in.request, in.by = peer{by.HostRequest().Peer, in.ctx}, r, by
	run.mu.Unlock()
	if in.ctx.Err() != nil {
		r.Cancel(nil)
		return
	}
	in.send(by, r)
}

// answered receives the answer to a request: it goes to the script, or to a host of the stateless era
// if it is a question.
func (run *running) answered(in *inner, result json.RawMessage, err error) {
	asks := err == nil && in.request.Era == transports.Stateless && in.by.Asks(result)
	run.mu.Lock()
	run.inFlight--
	late := run.outcome != nil || in.ctx.Err() != nil
	switch {
	case asks && !late:
		in.asked, in.restart = result, script.StopClock(in.ctx)
		run.asking = append(run.asking, in)
	case !asks:
		run.pass(in, answer{result, err})
	}
	if len(run.asking) > 0 && run.by != nil {
		run.parkSoon()
	}
	run.mu.Unlock()
	if asks && late {
		run.env.run.Forget(result)
	}
}

// pass returns an answer to the script. The mutex is held.
func (run *running) pass(in *inner, a answer) {
	if note, ok := wire.Text(wire.Get(a.result, "_meta", surface.MetaNote)); ok {
		run.notes = append(run.notes, note)
	}
	in.done <- a
	if in.method != "tools/call" {
		return
	}
	run.calls++
	run.name, _ = wire.Text(wire.Get(in.params, "name"))
	select {
	case run.made <- struct{}{}:
	default:
	}
}

// parkSoon schedules the question to the host, after a time for other calls to ask as well. The mutex
// is held.
func (run *running) parkSoon() {
	wait := gatherLonger
	if run.inFlight == 0 {
		wait = gatherFor
	}
	if run.due != nil {
		run.due.Stop()
	}
	run.due = time.AfterFunc(wait, func() { run.env.run.Go(run.park) })
}

// park answers the request of the host with the pending questions. The script waits.
func (run *running) park() {
	run.mu.Lock()
	if run.by == nil || run.outcome != nil || len(run.asking) == 0 {
		run.mu.Unlock()
		return
	}
	by := run.by
	run.by, run.parked, run.asking = nil, run.asking, nil
	var asks [][]byte
	for _, in := range run.parked {
		for key, question := range wire.Members(wire.Get(in.asked, "inputRequests")) {
			name, _ := wire.Text(key)
			asks = append(asks, fmt.Appendf(nil, "%s:%s", wire.Quote(in.key(name)), question))
		}
	}
	run.mu.Unlock()
	by.Park(run, fmt.Appendf(nil, "{%s}", bytes.Join(asks, []byte(","))))
}

// key returns the name of a request's question among those of its script.
func (in *inner) key(name string) string { return fmt.Sprintf("call-%d.%s", in.number, name) }

// next returns the params for repeating a request that asked, with its part of the host's answers.
func (in *inner) next(responses json.RawMessage) json.RawMessage {
	own := json.RawMessage(`{}`)
	for key, response := range wire.Members(responses) {
		name, _ := wire.Text(key)
		if name, ok := strings.CutPrefix(name, in.key("")); ok {
			own = wire.Set(own, name, response)
		}
	}
	params := wire.Set(in.params, "inputResponses", own)
	if state := wire.Get(in.asked, "requestState"); state != nil {
		params = wire.Set(params, "requestState", state)
	}
	return params
}

// A peer is the host of an inner request. The clock of the script is paused while the host is asked.
// Progress is reported as that of the script.
type peer struct {
	transports.Peer
	ctx context.Context
}

func (p peer) Notify(method string, params json.RawMessage) {
	if method != "notifications/progress" {
		p.Peer.Notify(method, params)
	}
}

func (p peer) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	restart := script.StopClock(p.ctx)
	answer := p.Peer.Request(ctx, method, params)
	return func() (json.RawMessage, error) {
		defer restart()
		return answer()
	}
}
