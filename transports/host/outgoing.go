package host

import (
	"encoding/json"
	"errors"

	"dynmcp/internal/wire"
)

// respond writes an answer, or takes it into the answer of its batch; nil
// parts are that there is none.
func (h *Host) respond(b *batch, parts [][]byte) {
	if b != nil {
		h.mu.Lock()
		parts = b.addLocked(parts)
		h.mu.Unlock()
	}
	if parts != nil {
		_ = h.write(0, parts) // without a limit there is always room
	}
}

// write sends a message, or keeps it until the answer to initialize is out.
// Before the host has begun there is nothing to wait for. Where more than
// limit bytes wait already it returns wire.ErrFull; 0 is no limit.
func (h *Host) write(limit int, parts [][]byte) error {
	h.mu.Lock()
	if !h.begun || h.open {
		h.mu.Unlock()
		err := h.out.SendWithin(limit, parts...)
		h.sent(err)
		return err
	}
	defer h.mu.Unlock()
	if limit > 0 && h.heldSize > limit {
		return wire.ErrFull
	}
	for _, part := range parts {
		h.heldSize += len(part)
	}
	h.held = append(h.held, parts)
	return nil
}

func (h *Host) releaseLocked() {
	h.open = true
	h.early = 0
	h.opened.Broadcast()
	for _, parts := range h.held {
		h.sent(h.out.Send(parts...))
	}
	h.held, h.heldSize = nil, 0
}

// earlyCost is what a message costs that waits for the answer to initialize,
// besides its bytes: a goroutine, mostly.
const earlyCost = 4 << 10

// noteEarly counts a message of size bytes that came before the answer to
// initialize: it, or what it is answered with, is kept until then.
func (h *Host) noteEarly(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.begun && !h.open {
		h.early += size + earlyCost
	}
}

// awaitRoom returns when more may be taken before the answer to initialize. It
// reports false when that answer is out: from then on nothing is early.
func (h *Host) awaitRoom() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.begun && !h.open && !h.ending && h.early > hostMaxQueued {
		h.opened.Wait()
	}
	return !h.begun || !h.open
}

// sent takes note that a message could not be queued: the host is gone, which
// Serve sees by itself.
func (h *Host) sent(err error) {
	if err != nil && !errors.Is(err, wire.ErrFull) {
		h.log.Debug("not sent to the host", "err", err)
	}
}

// Notify sends the host a notification. Progress and log messages are dropped
// while the host is far behind, which MCP allows; so is, when it is much
// further behind, all that is not one of the few that say what changed.
func (h *Host) Notify(method string, params json.RawMessage) {
	h.mu.Lock()
	begun := h.begun
	h.mu.Unlock()
	if !begun {
		return
	}
	limit := hostMaxUnread
	switch method {
	case "notifications/progress", "notifications/message":
		limit = hostMaxQueued
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/cancelled":
		limit = 0
	}
	if err := h.write(limit, wire.Notification(wire.Quote(method), params)); errors.Is(err, wire.ErrFull) {
		h.drop(method)
	}
}

// drop counts what was not sent; how much it was in the end flush says.
func (h *Host) drop(method string) {
	h.mu.Lock()
	h.dropped++
	first := h.dropped == 1
	h.mu.Unlock()
	if first {
		h.log.Warn("the host reads too slowly, notifications are dropped", "method", method)
	}
}
