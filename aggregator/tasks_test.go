package aggregator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
)

// A subscription to a task that its server refuses does not use the connection, which its
// idle timer ends.
func TestRefusedTaskSubscriptionUsesNothing(t *testing.T) {
	onStage(t, `
-- setup --
host 2026-07-28 {"extensions":{"io.modelcontextprotocol/tasks":{}}}
upstream 2026-07-28 {"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}
-- upstream config --
"idle_timeout": "1m"
`, func(t *testing.T, st *stage) {
		h, up := st.hosts[0], st.upstreams[0]
		h.send(h.message(`{"id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["up/7"]},"_meta":{$HOST}}}`))
		refused := false
		for _, m := range settle(up) {
			if m.Method == "subscriptions/listen" && wire.Get(m.Params, "notifications", "taskIds") != nil {
				refused = true
				up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such task"}}`, m.ID))
			}
		}
		settle(h)
		if !refused {
			t.Fatal("the server was not asked for the task")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := st.agg.set.Get("up").Status().State; got != lazy.Idle {
			t.Errorf("after its idle timeout the server is %s, want %s", got, lazy.Idle)
		}
	})
}
