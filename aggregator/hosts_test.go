package aggregator

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"dynmcp/internal/mcptest"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

func TestStartupWaitDependsOnTheHost(t *testing.T) {
	for _, tt := range []struct {
		config, client string
		want           time.Duration
	}{
		{``, "claude-code", 5 * time.Second},
		{``, "codex-mcp-client", 500 * time.Millisecond},
		{``, "Codex", 500 * time.Millisecond},
		{``, "gemini-cli-mcp-client", 2 * time.Second},
		{``, "opencode", 2 * time.Second},
		{``, "claude-ai", 2 * time.Second},
		{``, "", 2 * time.Second},
		{`,"host":"codex"`, "claude-code", 500 * time.Millisecond},
		{`,"host":"claude-code"`, "something", 5 * time.Second},
		{`,"host":"other"`, "codex-mcp-client", 2 * time.Second},
		{`,"startup_wait":"3s"`, "codex-mcp-client", 3 * time.Second},
		{`,"startup_wait":"2s","host":"codex"`, "claude-code", 2 * time.Second},
		{`,"startup_wait":0`, "claude-code", 0},
		{`,"expose":["direct"]`, "codex-mcp-client", 25 * time.Second},
	} {
		cfg, err := schema.ReadFiles(t.Context(), []string{mcptest.Config(t, `{"mcp":{"a":{"command":"none"}}`+tt.config+`}`)}, schema.LoadOptions{}).Load()
		if err != nil {
			t.Fatal(err)
		}
		agg, err := New(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer agg.Close()
		old := &session{}
		old.introduce(tt.client)
		meta, _ := json.Marshal(map[string]any{transports.MetaClientInfo: map[string]string{"name": tt.client, "version": "1"}})
		for era, got := range map[string]time.Duration{
			"handshake": agg.startupWait(old, &host.Request{}),
			"stateless": agg.startupWait(&session{}, &host.Request{Meta: meta, Era: transports.Stateless}),
		} {
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
		if row := "| `" + name + "` | `" + p.client + "`… | " + p.startupWait.String() + " |"; !strings.Contains(string(text), row) {
			t.Errorf("docs/config.md has no row %q", row)
		}
	}
}
