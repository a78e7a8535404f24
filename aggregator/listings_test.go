package aggregator

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

// A listing of one replica is known to the others, which have not started the server, and to
// their hosts, also if a replica was disconnected when it was made.
func TestWhatAReplicaListsIsKnownToAll(t *testing.T) {
	t.Parallel()
	memory := memkv.New()
	replica := func() (*Aggregator, *memkv.Connection) {
		c := memory.Connect()
		listings, err := c.Bucket(t.Context(), "catalog")
		if err != nil {
			t.Fatal(err)
		}
		return newQuiet(t, Options{Listings: listings}), c
	}
	a, _ := replica()
	b, connection := replica()
	s, host := join(b, "")
	before := s.Snapshot()
	s.Recipient.Read(before, catalog.NoTasks, promptsList, before.Content) // its host has read it
	// lists stores a listing as a does.
	lists := func(tool string) {
		t.Helper()
		server := a.config().Servers[0]
		err := a.served.state.Load().store.Keep(server, &catalog.Listing{
			Capabilities: json.RawMessage(`{"tools":{},"prompts":{}}`),
			Tools:        []json.RawMessage{json.RawMessage(`{"name":"` + tool + `","inputSchema":{"type":"object"}}`)},
			Prompts:      []json.RawMessage{json.RawMessage(`{"name":"p_` + tool + `"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	knows := func(agg *Aggregator, tool string) func() bool {
		return func() bool {
			info, ok := agg.catalog.View().Server("up")
			if !ok || !info.Stored || info.Loaded {
				return false
			}
			_, ok = agg.catalog.View().Tool("up/" + tool)
			return ok
		}
	}

	lists("first")
	mcptest.Eventually(t, "the other replica knows the tool", knows(b, "first"))
	mcptest.Eventually(t, "its host is told", func() bool {
		return slices.Contains(host.all(), "notifications/prompts/list_changed ")
	})

	connection.Cut()
	lists("second")
	connection.Heal()
	mcptest.Eventually(t, "the other replica knows what was listed meanwhile", knows(b, "second"))

	// A config that is applied again and a new replica have the stored listings at once.
	if err := b.Apply(b.config()); err != nil {
		t.Fatal(err)
	}
	later, _ := replica()
	if !knows(b, "second")() || !knows(later, "second")() {
		t.Error("what is kept is not known at once")
	}
	lists("third")
	mcptest.Eventually(t, "after a reload it still hears", knows(b, "third"))
}
