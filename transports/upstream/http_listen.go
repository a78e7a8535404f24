package upstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// reopenFirst and reopenMost are the shortest and the longest pause before a stream is requested
// again, whatever pause the upstream requests. After a stream that lived for longer than
// reopenSoon, or brought a message, the pause is the shortest; otherwise it doubles.
const (
	reopenFirst = 500 * time.Millisecond
	reopenMost  = 30 * time.Second
	reopenSoon  = 5 * time.Second
)

// listen keeps the stream for messages that belong to no call open, for as long as the
// upstream offers one. Without it an upstream works, but cannot report changes.
func (l *httpLink) listen() {
	ctx := l.conn.ctx
	var stream eventStream
	gap := false // an earlier stream has ended
	for l.listenOnce(ctx, &stream, gap) && stream.wait(ctx, l.conn.opts.timing.reopen) {
		gap = true
	}
}

// listenOnce reads one response and reports whether to request another. After a gap it tells
// the peer that all lists may have changed.
func (l *httpLink) listenOnce(ctx context.Context, stream *eventStream, gap bool) (again bool) {
	resp, err := l.listenFrom(ctx, stream.last)
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound && stream.opened:
		// The session is gone; the next use connects again.
		l.conn.retire(ErrSessionLost)
		return false
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return true
	case resp.StatusCode != http.StatusOK || mediaType(resp) != "text/event-stream":
		return false
	}
	if gap {
		l.conn.subscriptions.notifyListsChanged(l.conn.info.Has)
	}
	if err := stream.read(l, resp, nil, func() {}); err != nil {
		l.conn.log.Debug("stream broke", "err", err)
	}
	return true
}

// listenFrom requests the events after the one with the id last, or all new ones if last is "".
func (l *httpLink) listenFrom(ctx context.Context, last string) (*http.Response, error) {
	req, err := l.request(ctx, http.MethodGet, l.url, nil)
	if err != nil {
		return nil, err
	}
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	return l.fetch(req)
}

// An eventStream is one stream of messages, which may take several responses.
type eventStream struct {
	opened bool
	last   string        // id of the last event that had one
	retry  time.Duration // the pause that the upstream requests
	pause  time.Duration // our pause before the last response
	useful bool          // a message came since then, or a response lived for long
}

// wait pauses before the stream is requested again, for at least first. It reports false if
// ctx ends during the pause.
func (s *eventStream) wait(ctx context.Context, first time.Duration) bool {
	s.pause = min(2*s.pause, reopenMost)
	if s.useful || s.pause == 0 {
		s.pause = first
	}
	s.useful = false
	return !waitAtMost(ctx.Done(), max(s.pause, min(s.retry, reopenMost)))
}

// read handles the messages of one response. own is the call that it belongs to, if any;
// handled is called after each message.
func (s *eventStream) read(l *httpLink, resp *http.Response, own *Call, handled func()) error {
	s.opened = true
	body := resp.Body.(*answerBody)
	body.readFor(own)
	began := time.Now()
	defer func() { s.useful = s.useful || time.Since(began) > reopenSoon }()
	return readEvents(body, l.conn.server.MaxMessageBytes, func(e streamEvent) {
		if e.id != "" {
			s.last = e.id
		}
		if e.retry > 0 {
			s.retry = e.retry
		}
		if e.name == "" || e.name == "message" {
			s.useful = s.useful || len(bytes.TrimSpace(e.data)) > 0
			l.receive(e.data, own)
			handled()
		}
	})
}

// receive handles the message in an event. Invalid ones are logged; the answer may still come.
func (l *httpLink) receive(text []byte, own *Call) {
	l.conn.opts.Throttle()
	text = wire.JoinLines(withoutBOM(text))
	if len(text) == 0 {
		return
	}
	m, err := parseAny(text)
	if err != nil {
		l.conn.handleFault(wire.NewFault(text, err))
		return
	}
	l.conn.receive(m, own)
}

// parseAny parses a message, or a batch as a Message with only Raw.
func parseAny(text []byte) (wire.Message, error) {
	if len(text) > 0 && text[0] == '[' && wire.Valid(text) {
		return wire.Message{Raw: text}, nil
	}
	m, err := wire.ParseWithin(text, maxMessageDepth)
	if errors.Is(err, wire.ErrUnexpectedEnd) && len(text) == 0 {
		err = errors.New("it is empty")
	}
	return m, err
}
