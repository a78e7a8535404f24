package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// A request of the host is in the table from admit on, and whoever takes it
// out of there answers it, or decides that it gets no answer: answer, a cancel
// of the host, or the end.

// admit makes the checks that hold for both planes and takes the request into
// the table of those in flight.
func (h *Host) admit(r *Request) *wire.Error {
	version, refusal := requestVersion(r)
	if refusal != nil {
		return refusal
	}
	r.Modern = version != ""
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return transports.ShuttingDown(transports.NotSent)
	}
	if problem := h.outOfTurnLocked(r); problem != "" {
		return &wire.Error{Code: wire.CodeInvalidRequest, Message: problem}
	}
	h.requests[string(r.ID)] = r
	return nil
}

// outOfTurnLocked says why a request must not come now, "" where it may.
func (h *Host) outOfTurnLocked(r *Request) string {
	switch first := r.Method == "initialize" && !r.Modern; {
	case h.requests[string(r.ID)] != nil:
		return fmt.Sprintf("id %s is in flight already", r.ID)
	case first && r.batch != nil:
		return "initialize must not be part of a batch"
	case first && h.begun:
		return "initialize came already"
	case first:
		h.begun = true
	case r.Modern:
		h.begun = true
		h.releaseLocked()
	case !h.begun && r.Method != "ping" && r.Method != "server/discover": // the SDK says in which version that exists
		return r.Method + " came before initialize"
	}
	return ""
}

// takeOut removes a request from the table; false is that it is there no more.
func (h *Host) takeOut(r *Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.takeOutLocked(r)
}

func (h *Host) takeOutLocked(r *Request) bool {
	if h.requests[string(r.ID)] != r {
		return false
	}
	delete(h.requests, string(r.ID))
	if h.idle != nil && !h.waitingLocked() {
		close(h.idle)
		h.idle = nil
	}
	return true
}

// waitingLocked reports whether a request is in flight that will be answered
// by itself; a subscription only ends with the host.
func (h *Host) waitingLocked() bool {
	for _, r := range h.requests {
		if r.Method != "subscriptions/listen" {
			return true
		}
	}
	return false
}

// AwaitReader returns when no longer far too much waits for the host. Whoever
// has results for it calls this before it produces more: calls that were in
// flight when we stopped reading the host would otherwise all end up in memory.
// Not to be called while a cork is held.
func (h *Host) AwaitReader() { h.out.WaitBelow(hostMaxUnread) }

// answer writes what a request is answered with. It does not block.
func (h *Host) answer(r *Request, result json.RawMessage, err error) {
	h.mu.Lock()
	if !h.takeOutLocked(r) {
		h.mu.Unlock()
		return
	}
	h.answering.Add(1)
	open := h.open
	h.mu.Unlock()
	defer h.answering.Done()

	if err == nil && r.Modern {
		result = modernResult(r.Method, result)
	}
	switch {
	case r.Method == "initialize":
		h.writeFirst(r, result, err)
	case err == nil && open && r.batch == nil:
		h.sent(h.out.Send(wire.Result(r.ID, result)...))
	default:
		h.respond(r.batch, answerParts(r.ID, result, err))
	}
}

func answerParts(id, result json.RawMessage, err error) [][]byte {
	if err != nil {
		return wire.Failure(id, transports.WireError(err))
	}
	return wire.Result(id, result)
}

// writeFirst writes the answer to initialize and lets out what had to wait for
// it. After a failure the host may try again. What it settles holds before the
// host can have read it.
func (h *Host) writeFirst(r *Request, result json.RawMessage, err error) {
	h.mu.Lock()
	h.version, _ = wire.Text(wire.Get(result, "protocolVersion"))
	h.begun = err == nil
	h.mu.Unlock()
	h.sent(h.out.Send(answerParts(r.ID, result, err)...))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releaseLocked()
	h.open = err == nil
}

// cancelled ends a request without an answer. What is unknown or finished
// already is no error (MCP, "Cancellation").
func (h *Host) cancelled(params json.RawMessage) {
	h.mu.Lock()
	r := h.requests[string(wire.Get(params, "requestId"))]
	h.mu.Unlock()
	if r == nil || r.Method == "initialize" || !h.takeOut(r) {
		return
	}
	r.Cancel(wire.Get(params, "reason"))
	if r.sdkID != 0 {
		h.sdk.notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%d}`, r.sdkID))
	}
	h.respond(r.batch, nil)
}

// finish ends what is in flight: after its answers, or without them where they
// take too long. Nothing is taken any more.
func (h *Host) finish(busy func() bool) {
	h.mu.Lock()
	h.ending = true
	h.opened.Broadcast()
	h.mu.Unlock()
	h.awaitAnswers(busy, lastAnswers)
	h.hurry()
	h.abandon(func(*Request) bool { return true })
	h.answering.Wait()
}

func (h *Host) isEnding() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ending
}

// awaitAnswers returns when nothing is in flight any more, nobody reads the
// answers, or it took longer than patience; time in which busy reports true does
// not count.
func (h *Host) awaitAnswers(busy func() bool, patience time.Duration) {
	h.mu.Lock()
	idle := make(chan struct{})
	if h.waitingLocked() {
		h.idle = idle
	} else {
		close(idle)
	}
	h.mu.Unlock()
	const tick = lastAnswers / 10
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for left := patience; left > 0; {
		select {
		case <-idle:
			return
		case <-h.out.Done():
			return
		case <-ticker.C:
			if busy == nil || !busy() {
				left -= tick
			}
		}
	}
}

// hurry has the calls in flight answered now, by who knows their upstream and
// whether they were sent. The control plane has nobody to ask.
func (h *Host) hurry() {
	h.abandon(func(r *Request) bool { return isControl(r.Method) })
	h.mu.Lock()
	left := slices.Collect(maps.Values(h.requests))
	h.mu.Unlock()
	for _, r := range left {
		r.hurry()
	}
	h.awaitAnswers(nil, lastWords)
}

// abandon withdraws what is still in flight, of those that which picks, and says
// so, for a host that may still read.
func (h *Host) abandon(which func(*Request) bool) {
	h.mu.Lock()
	var left []*Request
	for _, r := range h.requests {
		if which(r) {
			left = append(left, r)
		}
	}
	for _, r := range left {
		h.takeOutLocked(r)
	}
	h.mu.Unlock()
	for _, r := range left {
		r.Cancel(nil)
		if r.Method == "subscriptions/listen" {
			h.respond(r.batch, nil)
			continue
		}
		h.respond(r.batch, wire.Failure(r.ID, transports.ShuttingDown(transports.Unknown)))
	}
}

// flush writes what is queued, for a host that takes it within patience; 0 is
// as long as it takes anything.
func (h *Host) flush(patience time.Duration) error {
	h.mu.Lock()
	if h.dropped > 0 {
		h.log.Warn("notifications were dropped, the host read too slowly", "count", h.dropped)
	}
	h.mu.Unlock()
	if patience > 0 {
		late := time.AfterFunc(patience, func() { h.out.Break(wire.ErrStalled) })
		defer late.Stop()
	}
	return h.out.Close()
}
