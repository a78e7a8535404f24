package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stormed stage has an upstream with one tool, named by a version that changes.
type stormed struct {
	*stage
	fetched int
}

// onStormed runs a test in a bubble.
func onStormed(t *testing.T, test func(t *testing.T, st *stormed)) {
	const setup = `-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"tools":{"listChanged":true}}
expose direct
`
	onStage(t, setup, func(t *testing.T, st *stage) { test(t, &stormed{stage: st}) })
}

func (st *stormed) change() {
	st.upstreams[0].send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// answer answers pending fetches of the list.
func (st *stormed) answer(version int) {
	synctest.Wait()
	for _, m := range st.upstreams[0].messages() {
		if m.Method == "tools/list" {
			st.fetched++
			st.upstreams[0].send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"v%d","inputSchema":{"type":"object"}}]}}`, m.ID, version))
		}
	}
}

// A burst of changes costs two fetches, and its last version is seen. While changes do not
// stop, the list is fetched now and then.
func TestStormOfChanges(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		every time.Duration
		most  int
	}{
		{0, 2}, // all at once
		{100 * time.Microsecond, 2},
		{2 * time.Millisecond, 6}, // for 20 seconds
	} {
		t.Run(test.every.String(), func(t *testing.T) {
			onStormed(t, func(t *testing.T, st *stormed) {
				const changes = 10_000
				for n := range changes {
					st.change()
					time.Sleep(test.every)
					st.answer(n)
				}
				during := st.fetched
				time.Sleep(settling)
				st.answer(changes)
				time.Sleep(settling)
				if st.fetched < 2 || st.fetched > test.most {
					t.Errorf("%d changes were fetched %d times, want 2 to %d", changes, st.fetched, test.most)
				}
				if test.most > 2 && during < 2 {
					t.Error("nothing was fetched while the changes went on")
				}
				host := st.hosts[0]
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

// Changes that come when the first fetch of a burst ends cost one more fetch only.
func TestChangesWhileAFetchEnds(t *testing.T) {
	t.Parallel()
	onStormed(t, func(t *testing.T, st *stormed) {
		const bursts = 1000
		for n := range bursts {
			st.change()
			st.answer(n)
			for range 20 {
				st.change()
			}
			st.answer(n)
			time.Sleep(settling)
			st.answer(n)
			time.Sleep(settling)
		}
		if st.fetched != 2*bursts {
			t.Errorf("%d bursts were fetched %d times", bursts, st.fetched)
		}
	})
}
