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

// Request implements transports.Peer: a server request on a stream that is shared
// goes to the newest session with a call in flight here whose host can answer it,
// or to the only session there is.
func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	capability, ok := serverRequests[method]
	if !ok && p.agg.single() == nil {
		return refused("method %q is not known", method)
	}
	calls := p.calls.all()
	for _, c := range slices.Backward(calls) {
		if capability == "" || c.session.supports(capability) {
			return c.Request(ctx, method, params)
		}
	}
	all := p.agg.sessions.all()
	if len(calls) > 0 || len(all) != 1 || capability != "" && !all[0].supports(capability) {
		return refused("no host with a call in flight supports %s", capability)
	}
	return p.requestHost(ctx, all[0], all[0].peer, method, params)
}

// refused is the answer to a server request that no host gets.
func refused(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// serverRequests are the requests that upstreams may make of hosts, with the
// capability of a host that can answer them.
var serverRequests = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",
}

// requestHost sends a server request to a session's host: through the request whose
// call it belongs to, or else the session.
func (p *peer) requestHost(ctx context.Context, s *session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	capability := serverRequests[method]
	switch {
	case s.declaration().era == transports.Stateless:
		return refused("the host speaks %s, in which servers cannot send requests", transports.StatelessVersion)
	case capability != "" && !s.supports(capability):
		return refused("the host does not support %s", capability)
	}
	params, done := p.withProgress(s, params)
	answer := through.Request(ctx, method, params)
	return func() (json.RawMessage, error) {
		defer done()
		return answer()
	}
}

// withProgress gives a server request that wants its progress reported a token of
// ours, because upstreams may choose the same, and has the host's progress sent to
// the upstream under its own until done is called.
func (p *peer) withProgress(s *session, params json.RawMessage) (_ json.RawMessage, done func()) {
	at := wire.Find(params, "_meta", "progressToken")
	token := at.In(params)
	conn := p.upstream.Conn()
	if token == nil || conn == nil {
		return params, func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastToken++
	ours := strconv.FormatInt(s.lastToken, 10)
	s.progress[ours] = func(params json.RawMessage) {
		if err := conn.Notify("notifications/progress", wire.Set(params, "progressToken", token)); err != nil {
			p.agg.log.Debug("progress not sent", "upstream", conn.Name(), "err", err)
		}
	}
	return wire.Replace(params, wire.Edit{Span: at, With: []byte(ours)}), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.progress, ours)
	}
}

// passProgress passes on the progress that a host makes with a server request.
func (s *session) passProgress(params json.RawMessage) {
	s.mu.Lock()
	pass := s.progress[string(wire.Get(params, "progressToken"))]
	s.mu.Unlock()
	if pass != nil {
		pass(params)
	}
}
