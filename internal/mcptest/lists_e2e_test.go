//go:build e2e

package mcptest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// keys returns the values of a member of the entries of a list.
func keys(t *testing.T, m mcptest.Message, list, member string) []string {
	t.Helper()
	var entries []map[string]any
	if err := json.Unmarshal(m.Member(list), &entries); err != nil {
		t.Fatalf("%s: %v", m.Raw, err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, fmt.Sprint(e[member]))
	}
	return all
}

func TestInitializeNegotiates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, want string
		args        []string
	}{
		{"2024-11-05", "2024-11-05", nil},
		{"2025-11-25", "2025-11-25", nil},
		{"1999-01-01", "2025-11-25", nil},
		{"2025-11-25", "2025-03-26", []string{"-protocol", "2025-03-26"}},
	} {
		h := mcptest.StartFake(t, c.args...)
		if got := string(h.Initialize(c.asked, nil).Member("protocolVersion")); got != `"`+c.want+`"` {
			t.Errorf("asked for %s: got %s, want %s", c.asked, got, c.want)
		}
	}
}

func TestInitializeDescribesTheServer(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-name", "gît", "-instructions", "Use <it>.", "-no", "resources,logging")
	m := h.Initialize(version, nil)
	if got := string(m.Member("serverInfo", "name")); got != `"gît"` {
		t.Errorf("got name %s", got)
	}
	if got := string(m.Member("instructions")); got != `"Use <it>."` {
		t.Errorf("got instructions %s", got)
	}
	if m.Member("capabilities", "resources") != nil || m.Member("capabilities", "prompts") == nil {
		t.Errorf("got capabilities %s", m.Member("capabilities"))
	}
	for _, method := range []string{"resources/list", "logging/setLevel", "server/discover", "x/y"} {
		if got := h.Call(method, `{}`).Code(); got != -32601 {
			t.Errorf("%s: got code %d, want -32601", method, got)
		}
	}
}

func TestAdvertisedAndRefused(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t, "-advertise-but-32601", "resources,prompts")
	if m := h.Initialize(version, nil); m.Member("capabilities", "resources") == nil {
		t.Errorf("got capabilities %s", m.Member("capabilities"))
	}
	for _, method := range []string{"resources/list", "resources/templates/list", "prompts/list"} {
		if got := h.Call(method, nil).Code(); got != -32601 {
			t.Errorf("%s: got code %d, want -32601", method, got)
		}
	}
}

func TestRequestsBeforeInitializeAreRefused(t *testing.T) {
	t.Parallel()
	h := mcptest.StartFake(t)
	if got := h.Tool("echo", nil).Code(); got != -32600 {
		t.Errorf("got code %d, want -32600", got)
	}
}

func TestListsArePaged(t *testing.T) {
	t.Parallel()
	h := ready(t, "-bare", "-tools", "5", "-page", "2")
	var names []string
	params, pages := `{}`, 0
	for {
		m := h.Call("tools/list", params)
		names = append(names, keys(t, m, "tools", "name")...)
		pages++
		if m.Member("nextCursor") == nil {
			break
		}
		params = `{"cursor":` + string(m.Member("nextCursor")) + `}`
	}
	want := []string{"tool_001", "tool_002", "tool_003", "tool_004", "tool_005"}
	if !slices.Equal(names, want) || pages != 3 {
		t.Errorf("got %v in %d pages, want %v in 3", names, pages, want)
	}
	if got := h.Call("tools/list", `{"cursor":"nonsense"}`).Code(); got != -32602 {
		t.Errorf("unknown cursor: got code %d, want -32602", got)
	}
}

func TestGivenEntriesAreListedVerbatim(t *testing.T) {
	t.Parallel()
	const tool = `{"name":"a b","inputSchema":{"type":"object"},"n":1.0}`
	const res = `{"uri":"x:1","name":"one","size":1e2}`
	h := ready(t, "-bare", "-tool", tool, "-resource", res, "-resource", "x:2", "-prompt", "p1", "-prompt", "p2")
	if got := string(h.Call("tools/list", nil).Member("tools")); got != "["+tool+"]" {
		t.Errorf("got %s", got)
	}
	if got := h.Tool("a b", `{"q":1}`).Text(); got != `{"q":1}` {
		t.Errorf("got %s", got)
	}
	m := h.Call("resources/list", nil)
	if got := keys(t, m, "resources", "uri"); !slices.Equal(got, []string{"x:1", "x:2"}) || !strings.Contains(m.Raw, res) {
		t.Errorf("got %s", m.Raw)
	}
	if got := keys(t, h.Call("prompts/list", nil), "prompts", "name"); !slices.Equal(got, []string{"p1", "p2"}) {
		t.Errorf("got %v", got)
	}
}

func TestListsChange(t *testing.T) {
	t.Parallel()
	h := ready(t, "-bare", "-name", "f")
	for n, c := range []struct{ kind, list, member, key string }{
		{"tool", "tools", "name", "new"},
		{"resource", "resources", "uri", "x:new"},
		{"prompt", "prompts", "name", "new"},
	} {
		h.Tool("add_"+c.kind, fmt.Sprintf(`{"name":%q}`, c.key))
		h.WaitMethod("notifications/"+c.list+"/list_changed", 1)
		if got := keys(t, h.Call(c.list+"/list", nil), c.list, c.member); !slices.Contains(got, c.key) {
			t.Errorf("%d: got %v", n, got)
		}
		h.Tool("remove_"+c.kind, fmt.Sprintf(`{"name":%q}`, c.key))
		h.WaitMethod("notifications/"+c.list+"/list_changed", 2)
		if got := keys(t, h.Call(c.list+"/list", nil), c.list, c.member); slices.Contains(got, c.key) {
			t.Errorf("%d: got %v", n, got)
		}
	}
	h.Tool("add_tool", `{"entry":{"name":"given","x":1.0}}`)
	if m := h.Call("tools/list", nil); !strings.Contains(m.Raw, `[{"name":"given","x":1.0}]`) {
		t.Errorf("got %s", m.Raw)
	}
	if got := h.Tool("given", `{}`).Text(); got != "{}" {
		t.Errorf("got %s", got)
	}
}
