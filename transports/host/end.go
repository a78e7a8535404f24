package host

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Time limits of the end of a session.
const (
	drainTimeout  = 1500 * time.Millisecond // for calls in flight when the host is gone
	shutdownGrace = 450 * time.Millisecond  // for the answers of calls that took longer
)

// End ends the session: requests in flight are answered first, within a time limit, and
// no more are accepted. Time in which SessionOptions.Busy reports true does not count, until
// ctx ends. When End returns, nothing more will be written.
func (s *Session) End(ctx context.Context) {
	s.endedByHost.Store(errors.Is(context.Cause(ctx), ErrEndedByHost))
	close(s.over)
	s.mu.Lock()
	s.ending = true
	s.room.Broadcast()
	s.mu.Unlock()
	s.awaitAnswers(drainTimeout, func() bool { return ctx.Err() == nil && s.opts.Busy != nil && s.opts.Busy() })

	// The rest is answered by the code that knows the upstream and whether the call was
	// sent. For the control plane there is no such code.
	s.abandon(func(r *Request) bool { return isControl(r.Method) })
	s.mu.Lock()
	left := slices.Collect(maps.Values(s.requests))
	s.mu.Unlock()
	for _, r := range left {
		r.drain()
	}
	s.awaitAnswers(shutdownGrace, func() bool { return false })
	s.abandon(func(*Request) bool { return true })
	s.writing.Wait()
	s.latest.close()
	s.others.close()

	s.control.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped > 0 {
		s.log.Warn("notifications were dropped, the host read too slowly", "count", s.dropped)
	}
}

// awaitAnswers returns when nothing is in flight, when nobody reads the answers, or
// after timeout, which excludes the time in which busy reports true.
func (s *Session) awaitAnswers(timeout time.Duration, busy func() bool) {
	s.mu.Lock()
	if !s.waitingLocked() {
		s.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.mu.Unlock()
	const tick = drainTimeout / 10
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for left := timeout; left > 0; {
		select {
		case <-idle:
			return
		case <-s.edge.Gone():
			return
		case <-ticker.C:
			if !busy() {
				left -= tick
			}
		}
	}
}

// abandon withdraws the requests in flight that match, and answers them with an error, because
// the host may still read.
func (s *Session) abandon(match func(*Request) bool) {
	s.mu.Lock()
	var left []*Request
	for _, r := range s.requests {
		if match(r) {
			left = append(left, r)
		}
	}
	for _, r := range left {
		s.removeLocked(r)
	}
	s.mu.Unlock()
	for _, r := range left {
		r.Cancel(nil)
		var parts [][]byte
		switch {
		case r.Method != "subscriptions/listen":
			parts = wire.Failure(r.ID, s.cutOff(transports.Unknown))
		case s.opts.Control != nil: // its result says that it ends (MCP 2026-07-28, "Subscriptions")
			parts = wire.AppendResult(nil, r.ID, transports.SetMeta(json.RawMessage(`{"resultType":"complete"}`), transports.MetaSubscriptionID, r.ID))
		}
		s.writeAnswer(r, r.batch, parts)
	}
}
