package host

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A heldMessage waits for the answer to initialize.
type heldMessage struct {
	about *Request
	class Class
	text  []byte
}

// writeAnswer writes an answer, or takes it into the answer of its batch; nil
// parts are that there is none.
func (s *Session) writeAnswer(r *Request, b *batch, parts [][]byte) {
	if b != nil {
		s.mu.Lock()
		all, last := b.addLocked(parts)
		s.mu.Unlock()
		if !last {
			return
		}
		parts = all
	}
	if parts == nil {
		s.edge.Drop(r)
		return
	}
	_ = s.write(r, Response, parts) // is never dropped
}

// write sends a message, or keeps it until the answer to initialize is out.
// Before the host has begun there is nothing to wait for.
func (s *Session) write(about *Request, class Class, parts [][]byte) error {
	s.mu.Lock()
	if !s.begun || s.open {
		s.mu.Unlock()
		err := s.edge.Write(about, class, parts...)
		s.noteSent(err)
		return err
	}
	defer s.mu.Unlock()
	if class == Expendable && s.heldSize > maxEarly || class == Ordinary && s.heldSize > 4*maxEarly {
		return wire.ErrFull
	}
	text := bytes.Join(parts, nil) // the parts may be lent
	s.heldSize += len(text)
	s.held = append(s.held, heldMessage{about, class, text})
	return nil
}

// An observedEdge tells Options.Observe of every message to the host.
type observedEdge struct {
	Edge
	observe func(fromHost bool, pieces ...[]byte)
}

// Write implements Edge.
func (e observedEdge) Write(about *Request, class Class, parts ...[]byte) error {
	e.observe(false, parts...)
	return e.Edge.Write(about, class, parts...)
}

func (s *Session) releaseLocked() {
	s.open = true
	s.opening.Store(false)
	s.early = 0
	s.room.Broadcast()
	for _, m := range s.held {
		s.noteSent(s.edge.Write(m.about, m.class, m.text))
	}
	s.held, s.heldSize = nil, 0
}

// noteSent takes note that a message could not be queued: the host is gone, which
// the edge sees by itself.
func (s *Session) noteSent(err error) {
	if err != nil && !errors.Is(err, wire.ErrFull) {
		s.log.Debug("not sent to the host", "err", err)
	}
}

// Notify sends the host a notification that belongs to no request of its.
// Progress and log messages are dropped while the host is far behind, which MCP
// allows; so is, when it is much further behind, all that is not one of the few
// that say what changed.
func (s *Session) Notify(method string, params json.RawMessage) { s.notify(nil, method, params) }

func (s *Session) notify(about *Request, method string, params json.RawMessage) {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return
	}
	class := Ordinary
	switch method {
	case "notifications/progress", "notifications/message":
		class = Expendable
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/cancelled":
		class = Essential
	}
	if err := s.write(about, class, wire.Notification(wire.Quote(method), params)); !errors.Is(err, wire.ErrFull) {
		return
	}
	s.mu.Lock()
	s.dropped++
	first := s.dropped == 1
	s.mu.Unlock()
	if s.opts.Dropped != nil {
		s.opts.Dropped()
	}
	if first { // how many it was in the end, End says
		s.log.Warn("the host reads too slowly, notifications are dropped", "method", method)
	}
}
