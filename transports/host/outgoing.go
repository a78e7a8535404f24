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

// writeAnswer writes an answer, or adds it to the answer of its batch; nil parts mean that
// there is no answer.
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
	_ = s.write(r, Response, parts) // a Response is never dropped
}

// write sends a message, or keeps it until the answer to initialize was sent. Before the
// host has begun, messages are not held.
func (s *Session) write(about *Request, class Class, parts [][]byte) error {
	s.mu.Lock()
	if !s.begun || s.open {
		s.mu.Unlock()
		s.opts.Tap.Show(s.opts.Peer, false, parts...)
		err := s.edge.Write(about, class, parts...)
		s.logUnsent(err)
		return err
	}
	defer s.mu.Unlock()
	if (class == Expendable || class == Latest) && s.heldSize > maxEarly || class == Ordinary && s.heldSize > 4*maxEarly {
		return wire.ErrFull
	}
	text := bytes.Join(parts, nil) // the parts may be reused by the caller
	s.heldSize += len(text)
	s.held = append(s.held, heldMessage{about, class, text})
	return nil
}

// releaseLocked sends the held messages, and lets the others be written from now on.
func (s *Session) releaseLocked() {
	s.open = true
	s.opening.Store(false)
	s.early = 0
	s.room.Broadcast()
	for _, m := range s.held {
		if s.opts.Tap.Watched() {
			s.opts.Tap.Show(s.opts.Peer, false, m.text)
		}
		s.logUnsent(s.edge.Write(m.about, m.class, m.text))
	}
	s.held, s.heldSize = nil, 0
}

// logUnsent logs that a message could not be queued because the host is gone, which the edge
// detects itself.
func (s *Session) logUnsent(err error) {
	if err != nil && !errors.Is(err, wire.ErrFull) {
		s.log.Debug("not sent to the host", "err", err)
	}
}

// Notify sends the host a notification about no request. classOf and latest determine its
// treatment while the host is far behind.
func (s *Session) Notify(method string, params json.RawMessage) { s.notify(nil, method, params) }

func (s *Session) notify(about *Request, method string, params json.RawMessage) {
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if !begun {
		return
	}
	taken := false
	if class, known := classOf(method); known {
		err := s.write(about, class, wire.Notification(wire.Quote(method), params))
		taken = !errors.Is(err, wire.ErrFull)
	} else if subject := subjectOf(method, params); subject != "" {
		taken = s.latest.put(subject, latestMessage{about, method, params})
	} else {
		taken = s.others.put("", latestMessage{about, method, params})
	}
	if !taken {
		s.countDropped(method)
	}
}

// classOf returns the class of a notification that is sent in order with answers. MCP allows
// progress and log messages to be lost.
func classOf(method string) (class Class, known bool) {
	switch method {
	case "notifications/progress", "notifications/message":
		return Expendable, true
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed",
		"notifications/cancelled", "notifications/subscriptions/acknowledged":
		return Essential, true
	}
	return 0, false
}

// sendMerged sends a merged notification, about its request unless that is answered.
func (s *Session) sendMerged(m latestMessage, class Class) error {
	text := wire.Notification(wire.Quote(m.method), m.params)
	err := s.write(m.about, class, text)
	if m.about != nil && err != nil && !errors.Is(err, wire.ErrFull) {
		err = s.write(nil, class, text)
	}
	return err
}

// countDropped counts a dropped notification. The first is logged.
func (s *Session) countDropped(method string) {
	s.mu.Lock()
	s.dropped++
	first := s.dropped == 1
	s.mu.Unlock()
	if s.opts.Dropped != nil {
		s.opts.Dropped()
	}
	if first { // End logs the final count
		s.log.Warn("the host reads too slowly, notifications are dropped", "method", method)
	}
}

// A batch is a JSON-RPC batch of the host, whose answers are sent as one. The session's
// mutex guards it.
type batch struct {
	left    int // unanswered requests, plus one while the batch is being read
	answers [][]byte
}

// addLocked adds one answer, or nil, and reports whether it was the last. With the last it
// returns all answers, or nil if there are none.
func (b *batch) addLocked(parts [][]byte) (all [][]byte, last bool) {
	if parts != nil {
		b.answers = append(b.answers, bytes.Join(parts, nil))
	}
	b.left--
	if b.left > 0 || len(b.answers) == 0 {
		return nil, b.left == 0
	}
	return [][]byte{{'['}, bytes.Join(b.answers, []byte{','}), {']'}}, true
}
