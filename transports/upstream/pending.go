package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"
)

// maxPending is how many calls may be in flight on one connection.
const maxPending = 1 << 16

var (
	errTooManyCalls  = errors.New("too many calls are in flight")
	errPendingClosed = errors.New("the connection has ended")
)

// pending are the calls in flight on a connection, by their ids. Whoever takes
// a call out of it ends the call: it calls Done, or withdraws it.
type pending struct {
	mu     sync.Mutex
	lastID int64
	calls  map[int64]*Call
	closed bool
}

// add gives a call an id. Where expired is not nil it runs after timeout, on a
// goroutine of its own, if the call is in flight then.
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
	call.id, call.sent, call.unsent, call.timer, call.abort = p.lastID, false, false, nil, nil
	if expired != nil {
		call.timer = time.AfterFunc(timeout, expired)
	}
	return call.id, nil
}

// markSent notes that a call is on its way; false means it has ended.
func (p *pending) markSent(id int64, call *Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] != call {
		return false
	}
	call.sent = true
	return true
}

// markUnsent notes that nothing of a call was sent, nor will be.
func (p *pending) markUnsent(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call := p.calls[id]; call != nil {
		call.unsent = true
	}
}

// setAbort notes how to end a call's own stream; false means the call has ended.
func (p *pending) setAbort(id int64, call *Call, abort context.CancelFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[id] != call {
		return false
	}
	call.abort = abort
	return true
}

// restartTimer gives a call its whole timeout again and returns it, nil if it is
// not in flight.
func (p *pending) restartTimer(id int64, timeout time.Duration) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[id]
	if call != nil && call.timer != nil {
		call.timer.Reset(timeout)
	}
	return call
}

// get returns the call with this id, nil if it is not in flight.
func (p *pending) get(id int64) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[id]
}

// take removes the call with this id and returns it. It returns nil if the call
// is not in flight, or is not own, where own is not nil.
func (p *pending) take(id int64, own *Call) *Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := p.calls[id]
	if call == nil || own != nil && call != own {
		return nil
	}
	p.removeLocked(call)
	return call
}

// withdraw removes a call whose caller wants no answer any more; false means it
// is not in flight. Where it was not sent yet, Start tells the upstream.
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
}

// close removes and returns all calls, in no order, and takes no more.
func (p *pending) close() map[int64]*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, call := range p.calls {
		if call.timer != nil {
			call.timer.Stop()
		}
	}
	calls := p.calls
	p.calls, p.closed = nil, true
	return calls
}
