package aggregator

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

func TestStartupWaitDependsOnTheHost(t *testing.T) {
	for _, tt := range []struct {
		config, client string
		want           time.Duration
	}{
		{``, "claude-code", 1200 * time.Millisecond},
		{``, "codex-mcp-client", 500 * time.Millisecond},
		{``, "Codex", 500 * time.Millisecond},
		{``, "gemini-cli-mcp-client", 2 * time.Second},
		{``, "opencode", 2 * time.Second},
		{``, "claude-ai", 2 * time.Second},
		{``, "", 2 * time.Second},
		{`,"host":"codex"`, "claude-code", 500 * time.Millisecond},
		{`,"host":"claude-code"`, "something", 1200 * time.Millisecond},
		{`,"host":"other"`, "codex-mcp-client", 2 * time.Second},
		{`,"startup_wait":"3s"`, "codex-mcp-client", 3 * time.Second},
		{`,"startup_wait":"2s","host":"codex"`, "claude-code", 2 * time.Second},
		{`,"startup_wait":0`, "claude-code", 0},
		{`,"expose":["direct"]`, "codex-mcp-client", 25 * time.Second},
		{`,"expose":["auto"]`, "claude-code", 25 * time.Second},
		{`,"expose":["auto"]`, "codex-mcp-client", 500 * time.Millisecond},
		{`,"expose":["auto"],"startup_wait":"3s"`, "claude-code", 3 * time.Second},
	} {
		agg := withConfig(t, tt.config)
		old, modern := &session{agg: agg}, &session{agg: agg}
		old.introduce(wire.Quote(tt.client))
		meta, _ := json.Marshal(map[string]any{transports.MetaClientInfo: map[string]string{"name": tt.client, "version": "1"}})
		modern.learnFrom(&host.Request{Meta: meta, Era: transports.Stateless})
		for era, got := range map[string]time.Duration{"handshake": old.startupWait(), "stateless": modern.startupWait()} {
			if got != tt.want {
				t.Errorf("%s, %q, %s: got %v, want %v", tt.config, tt.client, era, got, tt.want)
			}
		}
	}
}

// The table in docs/config.md is that of this package.
func TestHostsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/config.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range hostProfiles {
		list, auto := "changes", "discover"
		if p.freezes {
			list = "stays"
		}
		if p.searches {
			auto = "direct"
		}
		row := fmt.Sprintf("| `%s` | `%s`… | %s | %s | `%s` | %d |", name, p.client, p.startupWait, list, auto, p.longest())
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/config.md has no row %q", row)
		}
	}
}

// withConfig returns an aggregator of one server whose config has these members besides.
func withConfig(t *testing.T, members string) *Aggregator {
	t.Helper()
	cfg, err := schema.ReadFiles(t.Context(), []string{mcptest.Config(t, `{"mcp":{"a":{"command":"none"}}`+members+`}`)}, schema.LoadOptions{}).Load()
	if err != nil {
		t.Fatal(err)
	}
	agg, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agg.Close() })
	return agg
}

// What one session sees is no other's: not the tree of a request of the tree's API.
func TestSnapshotsAreOfOneSurface(t *testing.T) {
	agg := withConfig(t, `,"expose":["auto"]`)
	first := func(s *session) string {
		now := s.snapshot()
		for _, tool := range now.Entries(listing.Lists[0], now.Views[0]) {
			name, _ := wire.Text(wire.Get(tool, "name"))
			return name
		}
		return ""
	}
	claude := &session{agg: agg}
	claude.introduce(wire.Quote("claude-code"))
	for range 2 {
		if got := []string{first(&session{agg: agg, tree: true}), first(&session{agg: agg}), first(claude), first(&session{agg: agg, only: "a"})}; !slices.Equal(got, []string{"meta_tree", "discover_tool", "", ""}) {
			t.Errorf("got %q", got)
		}
	}
}
