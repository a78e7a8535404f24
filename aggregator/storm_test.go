package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"dynmcp/internal/wire"
)

// A burst of changes costs two fetches, however many they are, and what it ends
// with is seen. Of changes that never stop something is seen now and then.
func TestStormOfChanges(t *testing.T) {
	for _, test := range []struct {
		every time.Duration
		most  int
	}{
		{0, 2}, // all at once
		{100 * time.Microsecond, 2},
		{2 * time.Millisecond, 6}, // for 20 seconds
	} {
		t.Run(test.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newStage(t, txtar.Parse([]byte(`-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"tools":{"listChanged":true}}
expose direct
`)))
				defer st.close()
				up, host := st.upstreams[0], st.hosts[0]
				fetched := 0
				answer := func(version int) {
					synctest.Wait()
					for _, text := range up.take() {
						if m, _ := wire.Parse([]byte(text)); m.Method == "tools/list" {
							fetched++
							up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"v%d","inputSchema":{"type":"object"}}]}}`, m.ID, version))
						}
					}
				}
				const changes = 10_000
				for n := range changes {
					up.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					time.Sleep(test.every)
					answer(n)
				}
				during := fetched
				time.Sleep(settling)
				answer(changes)
				time.Sleep(settling)
				if fetched < 2 || fetched > test.most {
					t.Errorf("%d changes were fetched %d times, want 2 to %d", changes, fetched, test.most)
				}
				if test.most > 2 && during < 2 {
					t.Error("nothing was fetched while the changes went on")
				}
				host.take()
				host.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
				time.Sleep(settling)
				if got, last := strings.Join(host.take(), "\n"), fmt.Sprintf("up__v%d", changes); !strings.Contains(got, last) {
					t.Errorf("no %s in %s", last, got)
				}
			})
		})
	}
}
