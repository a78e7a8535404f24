//go:build e2e

package aggregator

import (
	"fmt"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
)

// Calls that their host never continues leave nothing behind: the oldest are abandoned for new
// ones, the last at their deadline.
func TestAbandonedCallsLeaveNothing(t *testing.T) {
	onStage(t, bridged, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		const calls, together = 10_000, 100
		parked, cancelled, refusals := 0, 0, 0
		upstreamGot := func() {
			for _, m := range settle(up) {
				switch {
				case m.Method == "tools/call":
					up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"of-%s","method":"elicitation/create","params":{"message":"?"}}`, m.ID))
				case m.Method == "notifications/cancelled":
					cancelled++
				case m.Error != nil:
					refusals++
				}
			}
		}
		for id := 0; id < calls; id += together {
			for n := range together {
				h.send(echoOf(h, id+n, ""))
			}
			upstreamGot()
			for _, m := range settle(h) {
				if ask.NeedsInput(nil, m.Result) {
					parked++
				}
			}
		}
		time.Sleep(ask.InputWait)
		upstreamGot()
		if parked != calls || cancelled != calls || refusals != calls {
			t.Errorf("%d calls were parked, %d cancelled, %d questions refused, want %d each", parked, cancelled, refusals, calls)
		}
		nothingParked(t, st)
	})
}
