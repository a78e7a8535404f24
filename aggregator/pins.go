package aggregator

import (
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/pinning"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server may be held to a lock of approved tools (schema.Server.Pins). What hosts may know
// is decided in the catalogue (catalog/pins.go), on each listing. Here is what a call adds:
// one of a server that blocks waits for a list that is being fetched again (toolCall.send),
// and is sent only if the connection that it goes to lists the tool as it was approved: an
// upstream of one owner may list another one than the catalogue has.

// awaitList has a call of another replica wait for the list of tools, if it is being fetched
// again here: that replica does not know it. It reports whether the call waits.
func (l *replicaLink) awaitList(r *host.Request) (waits bool) {
	guard := l.agg.state.Load().pins.Guard(l.endpoint.Upstream.Server.Name)
	fetching := l.endpoint.Listing.Refreshing()
	if r.Method != "tools/call" || !guard.Blocks() || fetching == nil {
		return false
	}
	r.CopyParams()
	l.agg.work.Answer(r, func() {
		ctx, cancel := l.agg.work.ContextOf(r)
		defer cancel()
		select {
		case <-fetching:
		case <-time.After(refreshWait):
		case <-ctx.Done():
			r.Reply(nil, transports.ShuttingDown(transports.NotSent))
			l.end()
			return
		}
		l.send(r)
	})
	return true
}

// checkApproved returns why a call must not be sent over a connection: that lists its tool
// otherwise than it was approved.
func (sv *served) checkApproved(c *forward.Call, conn *upstream.Conn) error {
	server, tool := c.Route.Upstream.Server.Name, ""
	switch t := c.Route.Tool; {
	case t != nil && t.Guarded:
		tool = t.Upstream
	case c.Route.Link != nil && c.Method == "tools/call":
		tool, _ = wire.Text(wire.Get(c.Route.Params, "name"))
	default:
		return nil
	}
	guard := sv.state.Load().pins.Guard(server)
	if !guard.Blocks() || guard.Approves(pins.Tool{Name: tool, Digest: c.Server.Listing.Digest(conn, tool)}) {
		return nil
	}
	return pinning.NotApproved(server, tool)
}
