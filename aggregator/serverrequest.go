package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Request implements transports.Peer: a server request on a stream that is shared
// goes to the newest call in flight here whose host can answer it, to one for which
// the host is not being asked already if there is any, or else to the only session
// there is. If calls of several users are in flight it is refused: it would show one
// what another does.
func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	if ask.Capability(method) == "" && p.agg.single() == nil {
		return ask.Refused("method %q is not known", method)
	}
	if answer := p.givenRoots(ctx, method); answer != nil {
		return answer
	}
	calls := p.calls.all()
	if !ofOneUser(calls) {
		return ask.Refused("calls of several users are in flight, and whose host is to be asked cannot be told")
	}
	var asking *forwardedCall
	for _, c := range slices.Backward(calls) {
		switch {
		case c.lacks(method, params) != "":
		case c.IsAsking(): // it need not be this one that now wants something else
			asking = cmp.Or(asking, c)
		default:
			return c.Request(ctx, method, params)
		}
	}
	if asking != nil {
		return asking.Request(ctx, method, params)
	}
	all := p.source().Sessions()
	if method == "roots/list" && slices.ContainsFunc(all, func(s *session) bool {
		d := s.declaration()
		return (!s.shares || s.lasts && p.upstream.Owner != "") && d.era == transports.Stateless && ask.Lacks(d.capabilities, method, params) == ""
	}) { // the next call asks
		q := ask.NewQuestion(method, params)
		return p.rootsAsked.Request(ctx, q, func(ctx context.Context) func() (json.RawMessage, error) {
			return func() (json.RawMessage, error) { return q.Wait(ctx) }
		})
	}
	if len(calls) > 0 || len(all) != 1 || all[0].shares && !all[0].replica && !p.isPrivate() || ask.Lacks(all[0].declaration().capabilities, method, params) != "" {
		return ask.Refused("no host with a call in flight supports %s", cmp.Or(ask.Capability(method), method))
	}
	return p.askHost(ctx, all[0], all[0].host, method, params)
}

// ofOneUser reports whether calls are of one user. Another replica has users of its own.
func ofOneUser(calls []*forwardedCall) bool {
	return !slices.ContainsFunc(calls, func(c *forwardedCall) bool {
		first, s := calls[0].session, c.session
		return s != first && (s.replica || first.replica || s.principal != first.principal)
	})
}

// askHost is requestHost for an upstream of the handshake era, from which calls are
// kept while it waits for the roots.
func (p *peer) askHost(ctx context.Context, s *session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	request := func(ctx context.Context) func() (json.RawMessage, error) {
		return p.requestHost(ctx, s, through, method, params)
	}
	switch {
	case method != "roots/list":
		return request(ctx)
	case s.replica:
		return p.rootsAsked.RequestReplica(ctx, request)
	}
	return p.rootsAsked.Request(ctx, nil, request)
}

// requestHost sends a server request to a session's host: through the request whose
// call it belongs to, or else the session.
func (p *peer) requestHost(ctx context.Context, s *session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	declared := s.declaration()
	if declared.era == transports.Stateless {
		return ask.Refused("the host speaks %s, in which it is asked within its own requests only", transports.StatelessVersion)
	}
	if lacking := ask.Lacks(declared.capabilities, method, params); lacking != "" {
		return ask.Refused("%s", lacking)
	}
	p.noteElicitation(s, params)
	params, done := p.withProgress(s, p.shownRelation(s, params))
	answer := through.Request(ctx, method, params)
	return func() (json.RawMessage, error) {
		defer done()
		result, err := answer()
		return p.ownRelation(s, result), err
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
