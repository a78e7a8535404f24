package aggregator

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// answerLists answers the requests for lists that an actor has got, with one entry
// called name, and returns their methods.
func answerLists(a *actor, name string) (methods []string) {
	for _, m := range a.messages() {
		for _, which := range listing.Lists {
			if m.Method == which.Method {
				methods = append(methods, m.Method)
				a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{%q:[{"name":%q,"uri":"x://%[3]s","uriTemplate":"x://{%[3]s}","inputSchema":{"type":"object"}}]}}`, m.ID, which.Key, name))
			}
		}
	}
	return methods
}

const everyList = `-- setup --
host 2025-11-25 {}
upstream 2025-11-25 {"tools":{},"prompts":{},"resources":{}}
expose direct
`

// When a stream of notifications was interrupted, its connection reports a change of every
// list. They are fetched once and put into the catalogue together.
func TestChangesOfEveryListAreOneRefresh(t *testing.T) {
	t.Parallel()
	onStage(t, everyList, func(t *testing.T, st *stage) {
		up, p := st.upstreams[0], st.agg.fleet.Of(st.agg.set.Get("up"))
		before := st.agg.catalog.View()
		for _, kind := range []string{"tools", "prompts", "resources"} {
			p.Notify("notifications/"+kind+"/list_changed", nil)
			synctest.Wait() // so that later changes come during the first fetch
		}
		var fetched []string
		for range listing.Lists { // no time passes: nothing waits for another round
			synctest.Wait()
			if len(fetched) < len(listing.Lists) && st.agg.catalog.View() != before {
				t.Errorf("the catalogue changed after only %q were fetched", fetched)
			}
			fetched = append(fetched, answerLists(up, "new")...)
		}
		synctest.Wait()
		after := st.agg.catalog.View()
		if len(after.Listed()) != 1 || len(after.Prompts()) != 1 || len(after.Resources()) != 1 || len(after.Templates()) != 1 {
			t.Errorf("after %q were fetched the catalogue does not hold them all", fetched)
		}
		time.Sleep(time.Minute)
		if fetched = append(fetched, answerLists(up, "new")...); len(fetched) != len(listing.Lists) {
			t.Errorf("got %q, want every list once", fetched)
		}
	})
}

// A change while a connection is gone, or while the next one lists, is fetched over the
// next one.
func TestChangeDuringReconnectionIsFetched(t *testing.T) {
	t.Parallel()
	onStage(t, everyList, func(t *testing.T, st *stage) {
		up, p := st.upstreams[0], st.agg.fleet.Of(st.agg.set.Get("up"))
		up.leave()
		quiesce()
		p.Notify("notifications/tools/list_changed", nil)
		synctest.Wait()
		up.mu.Lock()
		up.answers["tools/list"] = `{"tools":[{"name":"old","inputSchema":{"type":"object"}}]}`
		up.mu.Unlock()
		if err := st.agg.Load(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := answerLists(up, "new"); !slices.Contains(got, "tools/list") {
			t.Fatalf("the upstream was asked for %q, want tools/list", got)
		}
		quiesce()
		if got := st.agg.catalog.View().Listed(); len(got) != 1 || got[0].Upstream != "new" {
			t.Errorf("the catalogue holds %v", got)
		}
	})
}

// Calls do not wait while a listing is put into the catalogue.
func TestCallsDoNotWaitForAListing(t *testing.T) {
	t.Parallel()
	onStage(t, catalogued, func(t *testing.T, st *stage) {
		host, up := st.hosts[0], st.upstreams[0]
		config := gate{make(chan bool)} // the fetched list waits for it
		defer close(config.open)
		st.agg.fleet.Listings.Config = config
		up.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		synctest.Wait()
		if got := answerLists(up, "new"); len(got) != 1 {
			t.Fatalf("the upstream was asked for %q", got)
		}
		synctest.Wait()
		host.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo"}}}`)
		quiesce()
		sent := up.take()
		if len(sent) != 1 {
			t.Fatalf("the upstream got %q, want the call", sent)
		}
		m, _ := wire.Parse([]byte(sent[0]))
		up.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
		synctest.Wait()
		if got := host.take(); len(got) != 1 {
			t.Errorf("the host got %q, want the answer", got)
		}
	})
}

// A gate is a lock that is held until open is closed.
type gate struct{ open chan bool }

func (g gate) Lock() { <-g.open }
func (gate) Unlock() {}

// A panic about one fetched list does not end the fetching of lists.
func TestPanicDoesNotEndFetching(t *testing.T) {
	t.Parallel()
	onStage(t, everyList, func(t *testing.T, st *stage) {
		log := &panicking{Handler: slog.DiscardHandler, over: "up: "}
		st.agg.served.log = slog.New(log)
		up, p := st.upstreams[0], st.agg.fleet.Of(st.agg.set.Get("up"))
		for _, name := range []string{strings.Repeat("x", 1000), "good"} { // the first causes a warning
			p.Notify("notifications/tools/list_changed", nil)
			quiesce()
			if got := answerLists(up, name); len(got) != 1 {
				t.Fatalf("%.9s: the upstream was asked for %q", name, got)
			}
			quiesce()
		}
		if got := st.agg.catalog.View().Listed(); len(got) != 1 || got[0].Upstream != "good" || log.panics != 1 {
			t.Errorf("after %d panics the catalogue holds %v", log.panics, got)
		}
	})
}
