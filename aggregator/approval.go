package aggregator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// The tools of a server may have to be approved. The catalogue (catalog/approval.go) decides at each listing
// which of them hosts may see, and the judge checks each call again.

// awaitList makes a call of another replica wait for the list of tools if it is being fetched
// again here: the other replica does not know that. It reports whether the call waits.
func (l *replicaLink) awaitList(r *host.Request) (waits bool) {
	guard := run{l.agg}.Guard(l.endpoint.Upstream.Server.Name)
	fetching := l.endpoint.Listing.Refreshing()
	if r.Method != "tools/call" || !approval.Blocks(guard) || fetching == nil {
		return false
	}
	r.CopyParams()
	l.agg.work.AnswerWithin(r, func(ctx context.Context) {
		select {
		case <-fetching:
		case <-time.After(refreshWait):
		case <-ctx.Done():
			r.Reply(nil, cutOff(r))
			l.End()
			return
		}
		l.send(r)
	})
	return true
}

// CheckPage compares the page of a view, as it was read for a host, with the page as it was listed, and so
// as it is approved. One that differs makes the server's tools be listed again. With a guard that blocks, the host
// gets the page only if a tool is approved with it.
func (a run) CheckPage(c *forward.Call, conn *upstream.Conn, result json.RawMessage) error {
	server := c.Route.Upstream.Server.Name
	guard := a.Guard(server)
	if guard == nil || c.Method != "resources/read" {
		return nil
	}
	uri, _ := wire.Text(wire.Get(c.Route.Params, "uri"))
	if !strings.HasPrefix(uri, "ui://") || wire.Get(result, "contents") == nil {
		return nil
	}
	listed, tools := c.Server.Listing.Page(conn, uri)
	if len(tools) == 0 {
		return nil // no tool shows it
	}
	same := listed == definition.PageVaries || listed != "" && listed == definition.PageDigest(result)
	if !same {
		c.Server.Listing.Invalidate(listing.Lists[0].Changed)
	}
	approved := func(tool string) bool {
		return guard.Approves(definition.Tool{Name: tool, Digest: c.Server.Listing.Digest(conn, tool)})
	}
	if !approval.Blocks(guard) || same && slices.ContainsFunc(tools, approved) {
		return nil
	}
	return guard.NotApproved(tools[0], uri)
}
