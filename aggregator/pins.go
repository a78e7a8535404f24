package aggregator

import (
	"context"
	"time"

	"github.com/dynmcp/dynmcp/transports/host"
)

// A server may be held to a lock of approved tools (schema.Server.Pins). The catalogue
// (catalog/pins.go) decides at each listing which tools hosts may see, and the judge checks each
// call again.

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
			l.End()
			return
		}
		l.send(r)
	})
	return true
}
