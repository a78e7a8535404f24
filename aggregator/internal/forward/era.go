package forward

import (
	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// isOfAnotherEra reports whether a call is about to go to an upstream although hosts of its era
// have a separate one.
func (c *Call) isOfAnotherEra() bool {
	u := c.Route.Upstream
	return u.Owner == "" && !fleet.Isolated(&u.Server) && c.Env.Fleet.EraOwner(c.Session, u) != ""
}

// translateEra converts params to the era of an upstream. The stateless era repeats in every request
// what a host of the handshake era said once.
func (c *Call) translateEra(conn *upstream.Conn, era transports.Era) (wire.Object, error) {
	s, params := c.Session, c.Route.object()
	if era == conn.Era() {
		return params, nil
	}
	if era == transports.Stateless {
		return toHandshake(params)
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
	if able := ask.Able(s.Declaration().Capabilities); able != nil {
		params = transports.WithMeta(params, transports.MetaCapabilities, able)
	}
	if level := s.Recipient.Level(); level.IsSet() {
		params = transports.WithMeta(params, transports.MetaLogLevel, wire.Get(level.Params, "level"))
	}
	return params, nil
}

// toHandshake returns params of the stateless era for an upstream of the handshake era.
func toHandshake(params wire.Object) (wire.Object, error) {
	if params.Get("requestState") != nil { // such an upstream issues none
		return params, ask.Stale()
	}
	if params.Get("inputResponses") != nil || params.Get("task") != nil {
		params = params.Delete("inputResponses", "task") // the host knows no such task
	}
	return transports.WithoutMeta(params, transports.EraMeta...), nil
}
