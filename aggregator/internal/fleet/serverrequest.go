package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Request implements transports.Peer. A server request on a shared stream goes to the newest call in
// flight here whose host can answer it, preferably one whose host is not being asked already, or
// else to the only session. If calls of several users are in flight it is refused: it would
// reveal one user's activity to another.
func (p *Endpoint) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	all := p.Source().Sessions()
	refuse := ask.NoHost
	if len(all) == 1 && !all[0].Shared && !all[0].Replica {
		refuse = ask.Unsupported
	}
	if ask.Capability(method) == "" && p.fleet.Wrapped() == nil {
		return refuse("method %q is not known", method)
	}
	if answer := p.givenRoots(ctx, method); answer != nil {
		return answer
	}
	defer p.noteAsked(method)
	calls := p.Calls.All()
	if !sameUser(calls) {
		return ask.NoHost("calls of several users are in flight, and it is not known which host to ask")
	}
	var asking *call.Flight
	for _, c := range slices.Backward(calls) {
		switch {
		case c.Lacks(method, params) != "":
		case c.IsAsking(): // the request may belong to another call
			asking = cmp.Or(asking, c)
		default:
			return p.RequestIn(ctx, c, method, params)
		}
	}
	if asking != nil {
		return p.RequestIn(ctx, asking, method, params)
	}
	if method == "roots/list" && slices.ContainsFunc(all, func(s *sessions.Session) bool {
		d := s.Declaration()
		return (!s.Shared || s.Persistent && p.isOfFew()) && d.Era == transports.Stateless && ask.Lacks(d.Capabilities, method, params) == ""
	}) { // the next call delivers it
		q := ask.NewQuestion(method, params)
		return p.RootsAsked.Request(ctx, q, func(ctx context.Context) func() (json.RawMessage, error) {
			return func() (json.RawMessage, error) { return q.Wait(ctx) }
		})
	}
	if len(calls) > 0 || len(all) != 1 || all[0].Shared && !all[0].Replica && !p.isPrivate() || all[0].Lacks(method, params) != "" {
		return refuse("no host with a call in flight supports %s", cmp.Or(ask.Capability(method), method))
	}
	return p.askHost(ctx, all[0], all[0].Host, method, params)
}

// RequestIn sends a request to the host of a call: in the stateless era in the result of its
// request.
func (p *Endpoint) RequestIn(ctx context.Context, c *call.Flight, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	r := c.HostRequest()
	if answer := p.givenRoots(ctx, method); answer != nil {
		return answer
	}
	defer p.noteAsked(method)
	if r.Era != transports.Stateless || c.Session.Replica {
		return p.askHost(ctx, c.Session, r.Peer, method, params)
	}
	if lacking := c.Lacks(method, params); lacking != "" {
		return ask.NoHost("%s", lacking)
	}
	q := ask.NewQuestion(method, params)
	if method == "roots/list" {
		return p.RootsAsked.Request(ctx, q, p.claim(c.Session, func(ctx context.Context) func() (json.RawMessage, error) { return c.Ask(ctx, q) }))
	}
	return c.Ask(ctx, q)
}

// sameUser reports whether calls are of one user. Another replica has several users.
func sameUser(calls []*call.Flight) bool {
	return !slices.ContainsFunc(calls, func(c *call.Flight) bool {
		first, s := calls[0].Session, c.Session
		return s != first && (s.Replica || first.Replica || s.User != first.User)
	})
}

// askHost is requestHost for an upstream of the handshake era. Calls to it are held back while it
// waits for the roots.
func (p *Endpoint) askHost(ctx context.Context, s *sessions.Session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	request := func(ctx context.Context) func() (json.RawMessage, error) {
		return p.RequestHost(ctx, s, through, method, params)
	}
	switch {
	case method != "roots/list":
		return request(ctx)
	case s.Replica:
		return p.RootsAsked.RequestReplica(ctx, request)
	}
	return p.RootsAsked.Request(ctx, nil, p.claim(s, request))
}

// RequestHost sends a server request to a session's host: through the request of its call, or else
// through the session.
func (p *Endpoint) RequestHost(ctx context.Context, s *sessions.Session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	declared := s.Declaration()
	if declared.Era == transports.Stateless {
		return ask.NoHost("the host speaks %s, in which it can be asked only within its own requests", transports.StatelessVersion)
	}
	if lacking := s.Lacks(method, params); lacking != "" {
		return ask.NoHost("%s", lacking)
	}
	p.noteElicitation(s, params)
	params, done := p.withProgress(s, p.ToHostRelation(s, params))
	answer := through.Request(ctx, method, params)
	return func() (json.RawMessage, error) {
		defer done()
		result, err := answer()
		return p.toUpstreamRelation(s, result), err
	}
}

// withProgress replaces the progress token of a server request with one of ours, because upstreams
// may choose the same token. The host's progress is sent to the upstream under its own token
// until done is called.
func (p *Endpoint) withProgress(s *sessions.Session, params json.RawMessage) (_ json.RawMessage, done func()) {
	at := wire.Find(params, "_meta", "progressToken")
	token := at.In(params)
	conn := p.Upstream.Conn()
	if token == nil || conn == nil {
		return params, func() {}
	}
	ours, done := s.TrackProgress(func(params json.RawMessage) {
		if err := conn.Notify("notifications/progress", wire.Set(params, "progressToken", token)); err != nil {
			p.fleet.Log.Debug("progress not sent", "upstream", conn.Name(), "err", err)
		}
	})
	return wire.Replace(params, wire.Edit{Span: at, With: ours}), done
}
