package aggregator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Calls that wait for their server reach it in the order in which they came, also those
// that come when it is there again while others wait. A call that is cancelled meanwhile
// does not reach it.
func TestWaitingCallsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newStage(t, txtar.Parse([]byte(catalogued)))
		defer st.close()
		host, up := st.hosts[0], st.upstreams[0]
		open := st.agg.open
		st.agg.open = func(server schema.Server, opts upstream.Options) (*upstream.Conn, error) {
			time.Sleep(time.Second)
			return open(server, opts)
		}
		up.leave()
		synctest.Wait()
		const calls = 60
		var want []string
		for n := range calls {
			host.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"n":%d}}}}`, n, n))
			if n%7 == 3 {
				host.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
			} else {
				want = append(want, fmt.Sprint(n))
			}
		}
		time.Sleep(time.Second + settling)
		synctest.Wait()
		var got []string
		for _, text := range up.take() {
			m, _ := wire.Parse([]byte(text))
			n := string(wire.Get(m.Params, "arguments", "n"))
			if m.Method == "tools/call" {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the upstream got other calls, or in another order (-want +got):\n%s", diff)
		}
		if left := st.agg.peerOf(st.agg.set.Get("up")).record.queue.length.Load(); left != 0 {
			t.Errorf("%d calls stay in the queue", left)
		}
	})
}

// A call that is sent again takes its place before those that came later.
func TestQueueGoesByNumber(t *testing.T) {
	var q queue
	second, third := q.join(2), q.join(3)
	first := q.join(1)
	for i, ticket := range []*ticket{first, second, third} {
		<-ticket.next
		if !ticket.isFirst() {
			t.Errorf("ticket %d is not the first when it is its turn", i+1)
		}
		ticket.leave()
	}
}
