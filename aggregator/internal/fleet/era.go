package fleet

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
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
func (p *Peer) noteEra(conn *upstream.Conn) {
	server := &p.Upstream.Server
	switch {
	case conn.Era() != transports.Stateless:
	case p.Upstream.Owner == handshakeOwner+server.Name: // it knows no handshake
		p.Record.Entry.statelessOnly.Store(true)
	case p.isDivisible() && server.Place != schema.PlaceOne:
		p.Record.Entry.bothEras.Store(true)
	}
}

// EraOwner returns who has a server where that is the hosts of a session's era, "" where
// all have it.
func (f *Fleet) EraOwner(s *sessions.Session, u *lazy.Upstream) string {
	if !s.Shares || s.Replica {
		return ""
	}
	entry := f.Of(u).Record.Entry
	if !entry.bothEras.Load() || entry.statelessOnly.Load() || s.Declaration().Era != transports.Handshake {
		return ""
	}
	return handshakeOwner + u.Server.Name
}

// ofHandshake is what the upstream for hosts of the handshake era is told of them.
var ofHandshake = sessions.Declaration{Capabilities: json.RawMessage(AbleToAll), Era: transports.Handshake}
