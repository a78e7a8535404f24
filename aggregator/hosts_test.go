package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

func TestStartupWaitDependsOnTheHost(t *testing.T) {
	t.Parallel()
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
		{``, "copilot-cli", 2 * time.Second},
		{``, "factory-cli", 150 * time.Millisecond},
		{``, "", 150 * time.Millisecond},
		{`,"host":"codex"`, "claude-code", 500 * time.Millisecond},
		{`,"host":"claude-code"`, "something", 1200 * time.Millisecond},
		{`,"host":"other"`, "codex-mcp-client", 150 * time.Millisecond},
		{`,"startup_wait":"3s"`, "codex-mcp-client", 3 * time.Second},
		{`,"startup_wait":"2s","host":"codex"`, "claude-code", 2 * time.Second},
		{`,"startup_wait":0`, "claude-code", 0},
		{`,"expose":["direct"]`, "codex-mcp-client", 500 * time.Millisecond},
		{`,"expose":["direct"]`, "", 150 * time.Millisecond},
		{`,"expose":["auto"]`, "claude-code", 1200 * time.Millisecond},
		{`,"expose":["auto"]`, "codex-mcp-client", 500 * time.Millisecond},
		{`,"expose":["auto"],"startup_wait":"3s"`, "claude-code", 3 * time.Second},
	} {
		agg := withConfig(t, tt.config)
		old, modern := agg.openSession(Identity{}), agg.openSession(Identity{})
		old.Introduce(wire.Quote(tt.client))
		meta, _ := json.Marshal(map[string]any{transports.MetaClientInfo: map[string]string{"name": tt.client, "version": "1"}})
		request{modern, &host.Request{Meta: meta, Era: transports.Stateless}}.learn()
		for era, got := range map[string]time.Duration{"handshake": old.StartupWait(0), "stateless": modern.StartupWait(0)} {
			if got != tt.want {
				t.Errorf("%s, %q, %s: got %v, want %v", tt.config, tt.client, era, got, tt.want)
			}
		}
	}
}

// withConfig returns an aggregator of one server, with further members of the config.
func withConfig(t *testing.T, members string) *Aggregator {
	t.Helper()
	return withDocument(t, `{"mcp":{"a":{"command":"none"}}`+members+`}`)
}

func withDocument(t *testing.T, document string) *Aggregator {
	t.Helper()
	agg, err := New(configOf(t, document), Options{Surfaces: added})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agg.Close() })
	return agg
}

// Sessions with different surfaces have different snapshots, also those of the tree's API.
func TestSnapshotsAreOfOneSurface(t *testing.T) {
	t.Parallel()
	agg := withConfig(t, `,"expose":["auto"]`)
	first := func(s session) string {
		now := s.Snapshot()
		for _, tool := range now.Lists.Entries(listing.Lists[0], now.Views[0]) {
			name, _ := wire.Text(wire.Get(tool, "name"))
			return name
		}
		return ""
	}
	of := agg.of
	claude := of(&sessions.Session{})
	claude.Introduce(wire.Quote("claude-code"))
	for range 2 {
		if got := []string{first(of(&sessions.Session{Identity: Identity{TreeOnly: true}})), first(of(&sessions.Session{})), first(claude), first(of(&sessions.Session{Identity: Identity{Server: "a"}}))}; !slices.Equal(got, []string{"meta_tree", "discover_tool", "", ""}) {
			t.Errorf("got %q", got)
		}
	}
}

// If use_tool is split for some hosts, lists are rendered once for them and once for all
// others, however many sessions there are.
func TestSplitListsAreRenderedOnce(t *testing.T) {
	t.Parallel()
	agg := withConfig(t, `,"use_tool":"auto"`)
	for client, tool := range map[string]string{"claude-code": "use_tool_readonly", "claude-ai": "use_tool_readonly", "Visual Studio Code": "use_tool_readonly", "codex-mcp-client": "use_tool", "": "use_tool"} {
		one, two := agg.openSession(Identity{}), agg.openSession(Identity{})
		one.Introduce(wire.Quote(client))
		two.Introduce(wire.Quote(client))
		now := one.Snapshot()
		if two.Snapshot() != now || one.View() != two.View() {
			t.Errorf("%q: two sessions have a list each", client)
		}
		listed := now.Lists.Entries(listing.Lists[0], now.Views[0])
		if name, _ := wire.Text(wire.Get(listed[1], "name")); name != tool {
			t.Errorf("%q: got %s, want %s", client, name, tool)
		}
	}
	code, desktop := agg.openSession(Identity{}), agg.openSession(Identity{})
	code.Introduce(wire.Quote("visual studio code"))
	desktop.Introduce(wire.Quote("claude-ai"))
	if code.Snapshot() != desktop.Snapshot() {
		t.Error("two hosts that see the same have a list each")
	}
}

// Servers that do not fit the description of discover_tool are in that of the first tool
// that calls tools, for every host, and each server is listed once.
func TestEveryHostReadsOfEveryServer(t *testing.T) {
	t.Parallel()
	var servers []string
	for i := range 100 {
		servers = append(servers, fmt.Sprintf(`"server-%02d":{"command":"none","description":"Number %d of many."}`, i, i))
	}
	all := `"mcp":{` + strings.Join(servers, ",") + `}`
	for _, tt := range []struct {
		config, client string
		in             string // the tool whose description has the rest
	}{
		{``, "claude-code", "use_tool"},
		{`,"use_tool":"auto"`, "claude-code", "use_tool_readonly"},
		{`,"use_tool":"auto"`, "", "use_tool"},
		{`,"catalog":{"stable":"on"}`, "", "use_tool"},
		{`,"catalog":{"max_chars":0}`, "", "discover_tool"},
	} {
		s := withDocument(t, `{`+all+tt.config+`}`).openSession(Identity{})
		s.Introduce(wire.Quote(tt.client))
		instructions := string((&controlRequest{request: request{session: s}}).introduction())
		texts, whole := map[string]string{}, instructions
		now := s.Snapshot()
		for _, tool := range now.Unloaded().Lists.Entries(listing.Lists[0], now.Views[0]) {
			name, _ := wire.Text(wire.Get(tool, "name"))
			texts[name], _ = wire.Text(wire.Get(tool, "description"))
			whole += texts[name]
		}
		for i := range 100 {
			if line := fmt.Sprintf("\n- server-%02d: Number ", i); strings.Count(whole, line) != 1 {
				t.Errorf("%s, %q: %q is there %d times", tt.config, tt.client, line, strings.Count(whole, line))
			}
		}
		if !strings.Contains(texts[tt.in], "\n- server-99: ") {
			t.Errorf("%s, %q: %s does not have the rest: %q", tt.config, tt.client, tt.in, texts)
		}
	}
}

// What a session keeps of its host counts against the memory of its account, until the session
// ends. A host that may not have it is refused.
func TestADeclarationIsCounted(t *testing.T) {
	agg := withConfig(t, `,"gateway":{"max_held_bytes":1048576}`)
	capabilities := func(i int) json.RawMessage {
		return fmt.Appendf(nil, `{"experimental":{"x":"%d%s"}}`, i, strings.Repeat("y", 50_000))
	}
	held := func() int64 { total, _ := agg.Status().Memory(); return total }
	for _, era := range []transports.Era{transports.Handshake, transports.Stateless} {
		var open []session
		for i := range 10 {
			s := agg.openSession(Identity{Account: "greedy", Persistent: true})
			open = append(open, s)
			before := held()
			if ok := s.declare(capabilities(i), era); ok != (held() > before) {
				t.Errorf("session %d may declare: %v, its bytes count: %v", i, ok, held() > before)
			} else if i == 9 && ok {
				t.Error("one account may hold all")
			}
		}
		if other := agg.openSession(Identity{Account: "other", Persistent: true}); !other.declare(capabilities(0), era) {
			t.Error("another account is refused")
		} else {
			open = append(open, other)
		}
		for _, s := range open {
			s.end()
		}
		if got := held(); got != 0 {
			t.Errorf("%d bytes are held after the end of all sessions", got)
		}
	}
}
