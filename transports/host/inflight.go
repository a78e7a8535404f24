package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// admit makes the checks that hold for both planes and adds a request to the table of requests
// in flight. Each request leaves the table once: with its answer, a cancellation by the host,
// or the end of the session.
func (s *Session) admit(r *Request) *wire.Error {
	era, problem := requestEra(r.Meta)
	if problem != nil {
		return problem
	}
	r.Era = era
	if problem := introductionProblem(r); problem != nil {
		return problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return s.cutOff(transports.NotSent)
	}
	if s.requests[string(r.ID)] != nil {
		text := fmt.Sprintf("id %s is in flight already", r.ID)
		r.ID = nil // the host would take this for the answer to its first request
		return transports.OutcomeError(wire.CodeInvalidRequest, text, transports.NotSent)
	}
	if problem := s.handshakeProblemLocked(r); problem != "" {
		return transports.OutcomeError(wire.CodeInvalidRequest, problem, transports.NotSent)
	}
	s.requests[string(r.ID)] = r
	return nil
}

// handshakeProblemLocked returns how a request violates the order of the handshake, or "".
func (s *Session) handshakeProblemLocked(r *Request) string {
	if s.opts.Control == nil { // a replica introduces itself in either era, or in both
		s.begun, s.open = true, true
		return ""
	}
	switch first := r.Method == "initialize" && r.Era == transports.Handshake; {
	case first && r.batch != nil:
		return "initialize must not be part of a batch"
	case first && s.begun:
		return "initialize came already"
	case first:
		s.begun = true
		s.opening.Store(true)
	case r.Era == transports.Stateless:
		s.begun = true
		s.releaseLocked()
	case !s.begun && r.Method != "ping" && r.Method != "server/discover": // the SDK says in which version that exists
		return r.Method + " came before initialize"
	}
	return ""
}

// removeLocked removes a request from the table. It returns false if the request has left it.
func (s *Session) removeLocked(r *Request) bool {
	if s.requests[string(r.ID)] != r {
		return false
	}
	delete(s.requests, string(r.ID))
	if s.idle != nil && !s.waitingLocked() {
		close(s.idle)
		s.idle = nil
	}
	return true
}

// Waiting reports whether a request is in flight, except subscriptions, which only the host ends.
func (s *Session) Waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waitingLocked()
}

func (s *Session) waitingLocked() bool {
	for _, r := range s.requests {
		if r.Method != "subscriptions/listen" {
			return true
		}
	}
	return false
}

// answer writes the answer of a request, unless the request has left the table. The control
// plane, which answers on its own goroutines, waits for a host that is far behind.
func (s *Session) answer(r *Request, result json.RawMessage, err error) {
	if err == nil && r.sdkID != 0 {
		s.edge.AwaitRoom()
	}
	s.mu.Lock()
	if !s.removeLocked(r) {
		s.mu.Unlock()
		return
	}
	s.writing.Add(1)
	s.mu.Unlock()
	defer s.writing.Done()

	var parts [][]byte
	switch {
	case err != nil:
		parts = s.failure(r, err)
	case r.Era == transports.Stateless && s.opts.Control != nil:
		first, rest := statelessResult(r.Method, result, r.Answer)
		parts = wire.AppendResult(r.pieces[:0], r.ID, first, rest)
	default:
		parts = wire.AppendResult(r.pieces[:0], r.ID, result)
	}
	switch {
	case r.Method == "initialize" && s.opts.Control != nil:
		s.answerInitialize(r, result, err, parts)
	case r.batch != nil:
		s.writeAnswer(r, r.batch, parts)
	default:
		_ = s.write(r, Response, parts) // a Response is never dropped
	}
}

// failure returns the pieces of an error answer. Another replica gets all details.
func (s *Session) failure(r *Request, err error) [][]byte {
	failure, ok := errors.AsType[*transports.Failure](err)
	if !ok || s.opts.Control != nil {
		return wire.Failure(r.ID, transports.WireError(err))
	}
	parts := wire.Failure(r.ID, failure.Wire())
	parts[len(parts)-1] = fmt.Appendf(nil, `,%q:%s}`, transports.MemberReplica, failure.Record())
	return parts
}

// answerInitialize writes the answer to initialize and releases the messages that waited
// for it. After a failure the host may try again. The negotiated version applies before the
// host can have read it.
func (s *Session) answerInitialize(r *Request, result json.RawMessage, err error, parts [][]byte) {
	s.mu.Lock()
	s.version, _ = wire.Text(wire.Get(result, "protocolVersion"))
	s.begun = err == nil
	s.mu.Unlock()
	s.opts.Tap.Show(s.opts.Peer, false, parts...)
	s.logUnsent(s.edge.Write(r, Response, parts...))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releaseLocked()
	s.open = err == nil
}

// cancelled ends a request without an answer. An unknown or finished request is not an
// error (MCP, "Cancellation").
func (s *Session) cancelled(params json.RawMessage) {
	s.mu.Lock()
	r := s.requests[string(wire.Get(params, "requestId"))]
	taken := r != nil && r.Method != "initialize" && s.removeLocked(r)
	s.mu.Unlock()
	if !taken {
		return
	}
	r.Cancel(wire.Get(params, "reason"))
	if r.sdkID != 0 {
		s.control.notify("notifications/cancelled", fmt.Appendf(nil, `{"requestId":%d}`, r.sdkID))
	}
	s.writeAnswer(r, r.batch, nil)
}
