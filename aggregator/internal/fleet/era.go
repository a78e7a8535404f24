package fleet

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A shared run may have hosts of both eras. A server's behaviour may depend on the era: its
// requests to hosts, and its refusals for hosts that have not declared a capability. So the
// upstream of an entry is connected in the stateless era if the server supports it, and hosts of
// the handshake era have a separate one, connected at the first call of one of them. A server of
// one era has one connection, and calls of hosts of the other are translated; so are those of a
// server that runs only once.

// handshakeOwner begins the owner of upstreams for hosts of the handshake era.
const handshakeOwner = "handshake "

// noteEra records the era in which an upstream was connected.
func (p *Endpoint) noteEra(conn *upstream.Conn) {
	server := &p.Upstream.Server
	switch {
	case conn.Era() != transports.Stateless:
	case p.Upstream.Owner == handshakeOwner+server.Name: // it does not support the handshake
		p.Record.Entry.statelessOnly.Store(true)
	case p.isDivisible() && server.Place != schema.PlaceOne:
		p.Record.Entry.bothEras.Store(true)
	}
}

// EraOwner returns the owner of a server's upstream for the era of a session's hosts, "" if all
// share it.
func (f *Fleet) EraOwner(s *sessions.Session, u *lazy.Upstream) string {
	if !s.Shared || s.Replica {
		return ""
	}
	entry := f.Of(u).Record.Entry
	if !entry.bothEras.Load() || entry.statelessOnly.Load() || s.Declaration().Era != transports.Handshake {
		return ""
	}
	return handshakeOwner + u.Server.Name
}

// ofHandshake is declared to the upstream for hosts of the handshake era.
var ofHandshake = sessions.Declaration{Capabilities: json.RawMessage(AbleToAll), Era: transports.Handshake}
