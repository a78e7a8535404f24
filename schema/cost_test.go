package schema_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
)

// A host waits while the config is read. What an entry costs is counted in bytes, which do not depend
// on how busy the machine is: a table that is made for each key of each entry once cost 240 KB.
func TestAnEntryIsCheapToRead(t *testing.T) {
	if mcptest.RaceEnabled {
		t.Skip("the race detector allocates, too")
	}
	const servers, limit = 200, 48 << 10
	entries := map[string]any{}
	for i := range servers {
		entries[fmt.Sprintf("server%d", i)] = map[string]any{
			"command": "npx", "args": []string{"-y", "@acme/server"}, "description": "Search files and issues.",
			"env": map[string]string{"ACME_TOKEN": "abc"}, "timeout": "30s", "tool_filter": []string{"get_*"},
		}
	}
	document, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	file := mcptest.Config(t, string(document))
	load := func() {
		cfg, err := schema.ReadFiles(t.Context(), []string{file}, schema.LoadOptions{}).Load()
		if err != nil {
			t.Fatal(err)
		}
		if len(cfg.Servers) != servers {
			t.Fatalf("got %d servers, want %d", len(cfg.Servers), servers)
		}
	}
	load() // tables that are made once
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	load()
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / servers
	t.Logf("%d bytes for each entry", each)
	if each > limit {
		t.Errorf("an entry costs %d bytes, more than %d", each, limit)
	}
}
