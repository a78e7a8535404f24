package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// ask has the host of a call in flight asked something, with the result of its
// request. The function it returns waits for the answer.
func (c *forwardedCall) ask(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	if lacking := c.lacks(method, params); lacking != "" {
		return ask.Refused("%s", lacking)
	}
	q := ask.NewQuestion(method, params)
	if method == "roots/list" {
		return c.peer.rootsAsked.Request(ctx, q, func(ctx context.Context) func() (json.RawMessage, error) { return c.Ask(ctx, q) })
	}
	return c.Ask(ctx, q)
}

// lacks says why the host of a call cannot be asked something, "" if it can.
func (c *forwardedCall) lacks(method string, params json.RawMessage) string {
	r := c.HostRequest()
	switch {
	case r.Era == transports.Handshake, c.session.replica:
		return ask.Lacks(c.session.declaration().capabilities, method, params)
	case !ask.MayNeedInput(r.Method):
		return fmt.Sprintf("the host speaks %s, in which %s cannot ask it anything", transports.StatelessVersion, r.Method)
	case ask.Capability(method) == "":
		return fmt.Sprintf("the host speaks %s, in which it cannot be asked for %s", transports.StatelessVersion, method)
	}
	return ask.Lacks(wire.Get(r.Meta, transports.MetaCapabilities), method, params)
}

// State implements call.Owner.
func (c *forwardedCall) State(id string) ask.State {
	return ask.State{Call: id, Principal: c.session.principal.name, Upstream: c.route.upstream.Server.Name, Request: ask.Digest(c.Method, c.route.params)}
}

// resume takes a request that brings a requestState, and reports whether it is done
// with. If not it goes on to its upstream, with that upstream's own state in the place
// of the sealed one.
func (s *session) resume(r *host.Request, to route) (_ route, done bool) {
	if to.opened || !ask.MayNeedInput(r.Method) {
		return to, false
	}
	raw, responses, err := wire.GetStrict(to.params, "requestState", "inputResponses")
	if err != nil {
		r.Reply(nil, invalid("%s: %v", r.Method, err))
		return to, true
	}
	if raw == nil {
		return to, false
	}
	text, _ := wire.Text(raw)
	state, ours := s.agg.calls.States.Open(text)
	elsewhere := state.Upstream != to.upstream.Server.Name
	switch {
	case ours && elsewhere && to.onError != nil: // its upstream is among those that come next
		to.onError(ask.Stale())
		return to, true
	case !ours, elsewhere, state.Principal != s.principal.name, state.Request != ask.Digest(r.Method, to.params), time.Now().Unix() > state.Expires:
		r.Reply(nil, ask.Stale())
		return to, true
	}
	if state.State != nil && s.agg.calls.States.Take(state) {
		to.params, to.opened = wire.Set(to.params, "requestState", state.State), true
		return to, false
	}
	if c, ok := s.agg.calls.Waiting.Take(state.Call); ok {
		c.Continue(r, bytes.Clone(responses)) // the line is reused
	} else {
		r.Reply(nil, ask.Stale())
	}
	return to, true
}

// forgetState gives up what a result, which the host will not see, would have continued.
func (a *Aggregator) forgetState(result json.RawMessage) {
	text, _ := wire.Text(wire.Get(result, "requestState"))
	state, ours := a.calls.States.Open(text)
	if !ours {
		return
	}
	a.calls.States.Take(state)
	if c, ok := a.calls.Waiting.Take(state.Call); ok {
		c.Abandon(nil)
	}
}

// OwnerOf returns the replica that has what a requestState of a host continues, as its
// Options.Replica: a call, or the offer of a login. ok is false of a state that no
// replica of this cluster made, and where there is but one.
func (a *Aggregator) OwnerOf(text string) (replica string, ok bool) {
	return a.calls.States.OwnerOf(text)
}
