package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

var errHostGone = errors.New("the host is gone")

// Request sends the host a request about no request of its own. The returned function waits for
// the answer.
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
	s.pending[id] = pendingRequest{answered, ctx.Done()}
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
			params := fmt.Appendf(nil, `{"requestId":%d`, id)
			if cancelled, ok := errors.AsType[*transports.Cancelled](context.Cause(ctx)); ok && cancelled.Reason != nil {
				params = append(append(params, `,"reason":`...), cancelled.Reason...)
			}
			s.notify(about, "notifications/cancelled", append(params, '}'))
			return nil, ctx.Err()
		case <-s.over:
			return nil, errHostGone
		}
	}
}

// A pendingRequest is a request of ours to the host.
type pendingRequest struct {
	answered chan<- wire.Message
	over     <-chan struct{} // closed when its answer was forwarded, or is no longer wanted
}

func (s *Session) takePending(id int64) (p pendingRequest, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok = s.pending[id]
	delete(s.pending, id)
	return p, ok
}

// handleResponse passes the host's answer to the caller. Messages that another replica sends
// after the answer must not overtake it: there the host answered before its next call.
func (s *Session) handleResponse(m wire.Message) {
	id, _ := transports.ParseID(m.ID)
	p, ok := s.takePending(id)
	if !ok {
		s.log.Debug("the host answered a request that is not pending", "id", string(m.ID))
		return
	}
	p.answered <- m
	if s.opts.Control == nil {
		<-p.over
	}
}
