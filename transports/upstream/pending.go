package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// maxPending is how many calls may be in flight on one connection.
const maxPending = 1 << 16

var (
	errTooManyCalls  = fmt.Errorf("the maximum of %d calls is in flight", maxPending)
	errPendingClosed = errors.New("the connection has ended")
)

// pending are the calls in flight on a connection, by their ids. The code that removes a call
// ends it: it calls Done, or withdraws the call.
type pending struct {
	mu      sync.Mutex
	lastID  int64
	calls   map[int64]*Call
	closed  bool          // it takes no more
	drained chan struct{} // returned by refuse; nil before that and when it is closed
}

// add gives a call an id. expired, if not nil, runs after timeout, on a goroutine of its own,
// if the call is still in flight.
func (p *pending) add(call *Call, timeout time.Duration, expired func()) (id int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, errPendingClosed
	case len(p.calls) >= maxPending:
		return 0, errTooManyCalls
	}
	if p.calls == nil {
		p.calls = map[int64]*Call{}
	}
	p.lastID++
	p.calls[p.lastID] = call
	call.id, call.sent, call.unsent, call.timer, call.held, call.abort = p.lastID, false, false, nil, false, nil
	if expired != nil {
		call.timer = time.AfterFunc(timeout, expired)
	}
	return call.id, nil
}

// with calls f, if not nil, on the call that is in flight under id. It reports whether there
// is one; if own is not nil, it must be that call.
func (p *pending) with(id int64, own *Call, f func(*Call)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[id]
	if call == nil || own != nil && call != own {
		return false
	}
	if f != nil {
		f(call)
	}
	return true
}

// take removes and returns the call that is in flight under id, or nil; if own
// is not nil, it must be that call.
func (p *pending) take(id int64, own *Call) (taken *Call) {
	p.with(id, own, func(call *Call) {
		p.removeLocked(call)
		taken = call
	})
	return taken
}

// pause stops the timer of a call, or starts it again.
func (p *pending) pause(call *Call, held bool, timeout time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[call.id] != call || call.timer == nil {
		return
	}
	call.held = held
	if held {
		call.timer.Stop()
	} else {
		call.timer.Reset(timeout)
	}
}

// fail ends the call under id with an error, and reports whether there is one.
func (p *pending) fail(id int64, err error) bool {
	call := p.take(id, nil)
	if call == nil {
		return false
	}
	call.Outline = nil
	call.Done(nil, err)
	return true
}

// withdraw removes a call whose caller wants no answer any more; ok is false if it is not in
// flight. If it was not sent yet, Start tells the upstream.
func (p *pending) withdraw(call *Call, reason json.RawMessage) (id int64, sent bool, abort context.CancelFunc, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[call.id] != call {
		return 0, false, nil, false
	}
	p.removeLocked(call)
	call.reason = reason
	call.withdrawn.Store(true)
	return call.id, call.sent, call.abort, true
}

func (p *pending) removeLocked(call *Call) {
	if call.timer != nil {
		call.timer.Stop()
	}
	delete(p.calls, call.id)
	p.noteDrainedLocked()
}

// noteDrainedLocked closes drained when only calls without a time limit, such as notification
// streams and pings, are left. They end with the connection.
func (p *pending) noteDrainedLocked() {
	if p.drained == nil {
		return
	}
	for _, call := range p.calls {
		if !call.unlimited {
			return
		}
	}
	close(p.drained)
	p.drained = nil
}

// refuse takes no more calls. The channel is closed when those in flight have ended.
func (p *pending) refuse() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	drained := make(chan struct{})
	p.closed, p.drained = true, drained
	p.noteDrainedLocked()
	return drained
}

// markUnsent marks the calls that did not reach the upstream: those with ids after last, and
// some earlier ones.
func (p *pending) markUnsent(last int64, earlier []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, call := range p.calls {
		if id > last || slices.Contains(earlier, id) {
			call.unsent = true
		}
	}
}

// close removes and returns all calls, in no order, and takes no more.
func (p *pending) close() map[int64]*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	for _, call := range calls {
		if call.timer != nil {
			call.timer.Stop()
		}
	}
	p.calls, p.closed = nil, true
	p.noteDrainedLocked()
	return calls
}
