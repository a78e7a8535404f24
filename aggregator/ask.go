package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"dynmcp/internal/wire"
	"dynmcp/transports"
)

// Request implements transports.Peer: a question on a stream that is shared
// goes to the newest session with a call in flight here whose host can answer
// it, or to the only session there is.
func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	capability, ok := questions[method]
	if !ok && p.agg.only() == nil {
		return refused("method %q is not known", method)
	}
	s := p.whoCan(capability)
	if s == nil {
		return refused("no host with a call in flight supports %s", capability)
	}
	return p.ask(ctx, s, method, params)
}

// refused is the answer to a question that nobody is asked.
func refused(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// questions are the requests of upstreams, with the capability of a host that
// can answer them.
var questions = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

func (p *peer) whoCan(capability string) *session {
	p.mu.Lock()
	flights := slices.Clone(p.flights)
	p.mu.Unlock()
	for _, f := range slices.Backward(flights) {
		if capability == "" || f.session.can(capability) {
			return f.session
		}
	}
	if len(flights) > 0 {
		return nil
	}
	var only []*session
	p.agg.eachSession(func(s *session) { only = append(only, s) })
	if len(only) == 1 && (capability == "" || only[0].can(capability)) {
		return only[0]
	}
	return nil
}

// ask puts an upstream's question to a host.
func (p *peer) ask(ctx context.Context, s *session, method string, params json.RawMessage) func() (json.RawMessage, error) {
	capability := questions[method]
	s.mu.Lock()
	modern := s.modern
	s.mu.Unlock()
	switch {
	case s.peer == nil:
		return refused("there is no host to ask")
	case modern:
		return refused("the host speaks %s, in which servers cannot send requests", transports.StatelessVersion)
	case capability != "" && !s.can(capability):
		return refused("the host does not support %s", capability)
	}
	params, settled := p.passProgress(s, params)
	answer := s.peer.Request(ctx, method, params)
	return func() (json.RawMessage, error) {
		defer settled()
		return answer()
	}
}

// passProgress gives a question that wants its progress told a token of ours,
// because upstreams may choose the same, and has the host's progress sent to the
// upstream under its own until settled is called.
func (p *peer) passProgress(s *session, params json.RawMessage) (_ json.RawMessage, settled func()) {
	at := wire.Find(params, "_meta", "progressToken")
	token := at.In(params)
	conn := p.upstream.Conn()
	if token == nil || conn == nil {
		return params, func() {}
	}
	ours := strconv.FormatInt(p.agg.lastToken.Add(1), 10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress[ours] = func(params json.RawMessage) {
		if err := conn.Notify("notifications/progress", wire.Set(params, "progressToken", token)); err != nil {
			p.agg.log.Debug("progress not sent", "upstream", conn.Name(), "err", err)
		}
	}
	return wire.Replace(params, at, []byte(ours)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, ours)
	}
}

// progressed passes on the progress that a host makes with a question.
func (s *session) progressed(params json.RawMessage) {
	s.mu.Lock()
	pass := s.progress[string(wire.Get(params, "progressToken"))]
	s.mu.Unlock()
	if pass != nil {
		pass(params)
	}
}
