package aggregator

import (
	"context"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/pinning"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A server may be held to a lock of approved tools (schema.Server.Pins). The catalogue
// (catalog/pins.go) decides at each listing which tools hosts may see. Each call is checked
// again: a call to a server with pins "block" waits for a list that is being fetched again
// (toolCall.send), and is sent only if its connection lists the tool as approved. An upstream
// of one owner may list other tools than the catalogue has.

// awaitList makes a call of another replica wait for the list of tools if it is being fetched
// again here: the other replica does not know that. It reports whether the call waits.
func (l *replicaLink) awaitList(r *host.Request) (waits bool) {
	guard := l.agg.state.Load().pins.Guard(l.endpoint.Upstream.Server.Name)
	fetching := l.endpoint.Listing.Refreshing()
	if r.Method != "tools/call" || !guard.Blocks() || fetching == nil {
		return false
	}
	r.CopyParams()
	l.agg.work.AnswerWithin(r, func(ctx context.Context) {
		select {
		case <-fetching:
		case <-time.After(refreshWait):
		case <-ctx.Done():
			r.Reply(nil, cutOff(r))
			l.end()
			return
		}
		l.send(r)
	})
	return true
}

// checkApproved returns an error if a connection lists the tool of a call otherwise than it
// was approved.
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
