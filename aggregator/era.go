package aggregator

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// In a run that hosts share there may be hosts of both eras. What a server does may
// depend on the era: what it can ask, and what it refuses to a host that has not declared
// a capability. So the upstream of an entry is connected in the stateless era if the server
// speaks that, and hosts of the handshake era have one of their own in theirs, connected
// when the first of them calls. A server of one era has one connection, and calls of hosts
// of the other are translated; so are those of a server that is to run once.

// handshakeOwner begins who has what hosts of the handshake era have of a server.
const handshakeOwner = "handshake "

// noteEra notes in which era an upstream was connected.
func (p *peer) noteEra(conn *upstream.Conn) {
	server := &p.upstream.Server
	switch {
	case conn.Era() != transports.Stateless:
	case p.upstream.Owner == handshakeOwner+server.Name: // it knows no handshake
		p.record.entry.statelessOnly.Store(true)
	case p.isDivisible() && server.Place != schema.PlaceOne:
		p.record.entry.bothEras.Store(true)
	}
}

// eraOwner returns who has a server where that is the hosts of a session's era, "" where
// all have it.
func (s *session) eraOwner(u *lazy.Upstream) string {
	if !s.shares || s.replica {
		return ""
	}
	entry := s.agg.peerOf(u).record.entry
	if !entry.bothEras.Load() || entry.statelessOnly.Load() || s.declaration().era != transports.Handshake {
		return ""
	}
	return handshakeOwner + u.Server.Name
}

// isOfAnotherEra reports whether a call is about to go to an upstream although hosts of
// its era have another of the server.
func (c *forwardedCall) isOfAnotherEra() bool {
	u := c.route.upstream
	return u.Owner == "" && !isolated(&u.Server) && c.session.eraOwner(u) != ""
}

// translateEra returns params as the era of an upstream wants them. What a host
// of the handshake era said once, the stateless one says with every request.
func (c *forwardedCall) translateEra(conn *upstream.Conn, era transports.Era) (json.RawMessage, error) {
	s, params := c.session, c.route.params
	if era == conn.Era() {
		return params, nil
	}
	if era == transports.Stateless {
		if wire.Get(params, "requestState") != nil { // such an upstream gave none
			return nil, ask.Stale()
		}
		for _, name := range []string{"inputResponses", "task"} { // the host knows no such task
			if wire.Get(params, name) != nil {
				params = wire.Delete(params, name)
			}
		}
		return transports.DeleteMeta(params, transports.EraMeta...), nil
	}
	if c.route.rounds == 0 && ask.MayNeedInput(c.Method) {
		state, answers, err := wire.GetStrict(params, "requestState", "inputResponses")
		if err != nil || state != nil { // it was given none
			return nil, ask.Stale()
		}
		if answers != nil {
			params = wire.Delete(params, "inputResponses")
		}
	}
	if able := ask.Able(s.declaration().capabilities); able != nil {
		params = transports.SetMeta(params, transports.MetaCapabilities, able)
	}
	if level := s.recipient.Level(); level.IsSet() {
		params = transports.SetMeta(params, transports.MetaLogLevel, wire.Get(level.Params, "level"))
	}
	return params, nil
}

// ofHandshake is what the upstream for hosts of the handshake era is told of them.
var ofHandshake = declaration{capabilities: json.RawMessage(ableToAll), era: transports.Handshake}
