package aggregator

import (
	"encoding/json"

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
		p.agg.statelessOnly.add(server.Name)
	case p.isDivisible() && server.Place != schema.PlaceOne:
		p.agg.bothEras.add(server.Name)
	}
}

// eraOwner returns who has a server where that is the hosts of a session's era, "" where
// all have it.
func (s *session) eraOwner(server *schema.Server) string {
	a := s.agg
	if !s.shares || s.replica || !a.bothEras.has(server.Name) || a.statelessOnly.has(server.Name) || s.declaration().era != transports.Handshake {
		return ""
	}
	return handshakeOwner + server.Name
}

// isOfAnotherEra reports whether a call is about to go to an upstream although hosts of
// its era have another of the server.
func (c *forwardedCall) isOfAnotherEra() bool {
	u := c.route.upstream
	return u.Owner == "" && !isolated(&u.Server) && c.session.eraOwner(&u.Server) != ""
}

// ofHandshake is what the upstream for hosts of the handshake era is told of them.
var ofHandshake = declaration{capabilities: json.RawMessage(ableToAll), era: transports.Handshake}
