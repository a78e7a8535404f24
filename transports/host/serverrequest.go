package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

var errHostGone = errors.New("the host is gone")

// Request sends the host a request that belongs to none of its own. The function
// it returns waits for the answer.
func (s *Session) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	return s.request(ctx, nil, method, params)
}

func (s *Session) request(ctx context.Context, about *Request, method string, params json.RawMessage) func() (json.RawMessage, error) {
	failed := func(err error) func() (json.RawMessage, error) {
		return func() (json.RawMessage, error) { return nil, err }
	}
	answered := make(chan wire.Message, 1)
	s.mu.Lock()
	if !s.begun {
		s.mu.Unlock()
		return failed(errors.New("the host has not begun"))
	}
	s.lastID++
	id := s.lastID
	s.pending[id] = answered
	s.mu.Unlock()
	if err := s.write(about, Ordinary, wire.Request(id, method, params)); err != nil {
		s.takePending(id)
		if errors.Is(err, wire.ErrFull) {
			return failed(errors.New("the host does not read"))
		}
		return failed(errHostGone)
	}
	return func() (json.RawMessage, error) {
		defer s.takePending(id)
		select {
		case m := <-answered:
			if m.Error != nil {
				return nil, wire.ParseError(m.Error)
			}
			return m.Result, nil
		case <-ctx.Done():
			s.cancelPending(about, id, context.Cause(ctx))
			return nil, ctx.Err()
		case <-s.over:
			return nil, errHostGone
		}
	}
}

// cancelPending tells the host that we no longer want an answer.
func (s *Session) cancelPending(about *Request, id int64, cause error) {
	params := fmt.Appendf(nil, `{"requestId":%d`, id)
	var cancelled *transports.Cancelled
	if errors.As(cause, &cancelled) && cancelled.Reason != nil {
		params = append(append(params, `,"reason":`...), cancelled.Reason...)
	}
	s.notify(about, "notifications/cancelled", append(params, '}'))
}

func (s *Session) takePending(id int64) chan<- wire.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	answered := s.pending[id]
	delete(s.pending, id)
	return answered
}

// handleResponse hands the host's answer to whoever asked.
func (s *Session) handleResponse(m wire.Message) {
	id, _ := transports.ParseID(m.ID)
	answered := s.takePending(id)
	if answered == nil {
		s.log.Debug("the host answered a request that is not pending", "id", string(m.ID))
		return
	}
	answered <- m
}

// responseTooLarge fails our request with this id: the host's answer is too long.
func (s *Session) responseTooLarge(id []byte) {
	e := &wire.Error{Code: transports.CodeTooLarge, Message: "the host's answer is too large"}
	s.handleResponse(wire.Message{ID: id, Error: e.JSON()})
}
