package forward

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// State implements call.Owner.
func (c *Call) State(id string) ask.State {
	return ask.State{Call: id, Principal: c.Session.User, Upstream: c.Route.Upstream.Server.Name, Request: ask.Digest(c.Method, c.Route.Params)}
}

// resume handles a request with a requestState, and reports whether it is done. If not, the request
// continues to its upstream, with that upstream's own state in place of the sealed one.
func (env *Env) resume(s *sessions.Session, r *host.Request, to Route) (_ Route, done bool) {
	if to.opened || !ask.MayNeedInput(r.Method) {
		return to, false
	}
	raw, responses, err := to.object().GetStrict("requestState", "inputResponses")
	if err != nil {
		r.Reply(nil, transports.InvalidParams("%s: %v", r.Method, err))
		return to, true
	}
	if raw == nil {
		return to, false
	}
	text, _ := wire.Text(raw)
	state, ours := env.States.Open(text)
	switch {
	case !ours, state.Upstream != to.Upstream.Server.Name, state.Principal != s.User, state.Request != ask.Digest(r.Method, to.Params), time.Now().Unix() > state.Expires:
		r.Reply(nil, ask.Stale())
		return to, true
	}
	if state.State != nil && env.States.Take(state) {
		to.Params, to.opened = wire.Set(to.Params, "requestState", state.State), true
		return to, false
	}
	if c, ok := env.Waiting.Take(state.Call); ok {
		c.Continue(r, bytes.Clone(responses)) // the line is reused
	} else {
		r.Reply(nil, ask.Stale())
	}
	return to, true
}

// Forget gives up the state in a result that the host will not see.
func (env *Env) Forget(result json.RawMessage) {
	text, _ := wire.Text(wire.Get(result, "requestState"))
	state, ours := env.States.Open(text)
	if !ours {
		return
	}
	env.States.Take(state)
	if c, ok := env.Waiting.Take(state.Call); ok {
		c.Abandon(nil)
	}
}

// translateEra converts params to the era of an upstream. In the stateless era every request
// has what a host of the handshake era declares once.
func (c *Call) translateEra(conn *upstream.Conn, era transports.Era) (wire.Object, error) {
	s, params := c.Session, c.Route.object()
	if era == conn.Era() {
		return params, nil
	}
	if era == transports.Stateless {
		return ask.HandshakeParams(params)
	}
	if c.Route.rounds == 0 && ask.MayNeedInput(c.Method) {
		state, answers, err := params.GetStrict("requestState", "inputResponses")
		if err != nil || state != nil { // none was issued
			return params, ask.Stale()
		}
		if answers != nil {
			params = params.Delete("inputResponses")
		}
	}
	if able := ask.Able(s.Declaration().Capabilities, task.Extension); able != nil {
		params = transports.WithMeta(params, transports.MetaCapabilities, able)
	}
	if level := s.Recipient.Level(); level.IsSet() {
		params = transports.WithMeta(params, transports.MetaLogLevel, wire.Get(level.Params, "level"))
	}
	return params, nil
}
