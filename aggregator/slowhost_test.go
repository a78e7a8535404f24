package aggregator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A host that does not read, with answers and notifications waiting for it, delays
// no other host.
func TestHostThatDoesNotReadDelaysNoOther(t *testing.T) {
	t.Parallel()
	onStage(t, catalogued, func(t *testing.T, st *stage) {
		other, up := st.hosts[0], st.upstreams[0]
		ours, theirs := net.Pipe()
		st.running.Go(func() {
			_ = st.agg.Serve(t.Context(), ours, ours)
			ours.Close()
		})
		defer theirs.Close()
		const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		fmt.Fprintln(theirs, initialize)
		if _, err := bufio.NewReader(theirs).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(theirs, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo"}}}` + "\n"
		_, _ = io.WriteString(theirs, fmt.Sprintf(strings.Repeat(call, 3), 1, 2, 3))
		synctest.Wait()
		large := strings.Repeat("x", 1<<16)
		began := time.Now()
		for n := range 3 + 20 { // the upstream answers the calls of both hosts
			if n >= 3 {
				other.send(fmt.Sprintf(strings.TrimSpace(call), n))
				synctest.Wait()
			}
			for _, m := range up.messages() {
				up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[],"x":%q}}`, m.ID, large))
			}
			synctest.Wait()
		}
		if got := len(other.take()); got != 20 {
			t.Errorf("the other host got %d answers, want 20", got)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("they took %v", took)
		}
		up.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		for _, m := range up.messages() {
			up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}}`, m.ID))
		}
		quiesce()
		if got := strings.Join(other.take(), "\n"); !strings.Contains(got, "notifications/tools/list_changed") {
			t.Errorf("the other host was told %q", got)
		}
	})
}
