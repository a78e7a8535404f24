package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// Request implements transports.Peer: a server request on a stream that is shared
// goes to the newest call in flight here whose host can answer it, to one for which
// the host is not being asked already if there is any, or else to the only session
// there is. If calls of several users are in flight it is refused: it would show one
// what another does.
func (p *peer) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	if serverRequests[method] == "" && p.agg.single() == nil {
		return refused("method %q is not known", method)
	}
	if answer := p.givenRoots(ctx, method); answer != nil {
		return answer
	}
	calls := p.calls.all()
	if !ofOneUser(calls) {
		return refused("calls of several users are in flight, and whose host is to be asked cannot be told")
	}
	var asking *forwardedCall
	for _, c := range slices.Backward(calls) {
		switch {
		case c.lacks(method, params) != "":
		case c.isAsking(): // it need not be this one that now wants something else
			asking = cmp.Or(asking, c)
		default:
			return c.Request(ctx, method, params)
		}
	}
	if asking != nil {
		return asking.Request(ctx, method, params)
	}
	all := p.sessions()
	if method == "roots/list" && slices.ContainsFunc(all, func(s *session) bool {
		d := s.declaration()
		return (!s.shares || s.lasts && p.upstream.Owner != "") && d.era == transports.Stateless && lacks(d.capabilities, method, params) == ""
	}) { // the next call asks
		q := newQuestion(method, params)
		return p.requestRoots(ctx, q, func(ctx context.Context) func() (json.RawMessage, error) {
			return func() (json.RawMessage, error) { return q.wait(ctx) }
		})
	}
	if len(calls) > 0 || len(all) != 1 || all[0].shares && !all[0].replica && !p.isPrivate() || lacks(all[0].declaration().capabilities, method, params) != "" {
		return refused("no host with a call in flight supports %s", cmp.Or(serverRequests[method], method))
	}
	return p.askHost(ctx, all[0], all[0].peer, method, params)
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
	ask := func(ctx context.Context) func() (json.RawMessage, error) {
		return p.requestHost(ctx, s, through, method, params)
	}
	switch {
	case method != "roots/list":
		return ask(ctx)
	case s.replica: // which keeps its own calls; those of hosts here must wait as well
		h, answer := p.closeGate(nil), ask(ctx)
		return func() (json.RawMessage, error) {
			p.agg.work.Go(func() {
				defer h.end(nil)
				<-ctx.Done()
				select {
				case <-time.After(settlePause):
				case <-p.agg.ctx.Done():
				}
			})
			return answer()
		}
	}
	return p.requestRoots(ctx, nil, ask)
}

// refused is the answer to a server request that no host gets. Its code is our
// own: servers that pass on what they are told take -32601, which would be right
// for a method that a host does not have, for the failure of what the host called.
func refused(format string, args ...any) func() (json.RawMessage, error) {
	err := &wire.Error{Code: transports.CodeNoHost, Message: fmt.Sprintf(format, args...)}
	return func() (json.RawMessage, error) { return nil, err }
}

// serverRequests are the requests that upstreams may make of hosts, with the
// capability of a host that can answer them.
var serverRequests = map[string]string{
	"sampling/createMessage": "sampling",
	"elicitation/create":     "elicitation",
	"roots/list":             "roots",

	// About tasks that the host has made of an upstream's requests (MCP 2025-11-25).
	"tasks/get":    "tasks",
	"tasks/result": "tasks",
	"tasks/list":   "tasks",
	"tasks/cancel": "tasks",
}

// lacks says what a host with these capabilities did not declare of what it takes
// to answer a server request, "" if it declared all. A method that is not known
// takes nothing.
func lacks(capabilities json.RawMessage, method string, params json.RawMessage) string {
	capability := serverRequests[method]
	declared := wire.Get(capabilities, capability)
	part := ""
	switch byURL := wire.EqualString(wire.Get(params, "mode"), "url"); {
	case capability == "":
		return ""
	case declared == nil:
		return "the host does not support " + capability
	case capability == "elicitation" && byURL:
		part = "url"
	case capability == "elicitation" && wire.Get(declared, "url") != nil:
		part = "form" // which goes without saying where nothing is said
	case capability == "sampling" && (wire.Get(params, "tools") != nil || wire.Get(params, "toolChoice") != nil):
		part = "tools"
	}
	if part != "" && wire.Get(declared, part) == nil {
		return fmt.Sprintf("the host does not support %s.%s", capability, part)
	}
	return ""
}

// askable returns of a host's capabilities those by which upstreams of the other era
// can ask it something, nil if there are none.
func askable(capabilities json.RawMessage) (able json.RawMessage) {
	for _, capability := range []string{"roots", "sampling", "elicitation"} {
		if declared := wire.Get(capabilities, capability); declared != nil {
			if able == nil {
				able = json.RawMessage(`{}`)
			}
			able = wire.Set(able, capability, declared)
		}
	}
	return able
}

// requestHost sends a server request to a session's host: through the request whose
// call it belongs to, or else the session.
func (p *peer) requestHost(ctx context.Context, s *session, through transports.Peer, method string, params json.RawMessage) func() (json.RawMessage, error) {
	declared := s.declaration()
	if declared.era == transports.Stateless {
		return refused("the host speaks %s, in which it is asked within its own requests only", transports.StatelessVersion)
	}
	if lacking := lacks(declared.capabilities, method, params); lacking != "" {
		return refused("%s", lacking)
	}
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
