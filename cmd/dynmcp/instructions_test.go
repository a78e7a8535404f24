package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// The operator's instructions come first, on every surface and in both eras, and leave the rest as it is.
func TestInstructionsOfTheOperatorComeFirst(t *testing.T) {
	t.Parallel()
	const own = "Use tracker for issues.\nNever the browser."
	for _, surface := range []string{"discover", "direct", "tree", "browser", "proxy"} {
		t.Run(surface, func(t *testing.T) {
			t.Parallel()
			alpha := fake(t, "alpha", "-instructions", "Of the server.")
			texts := map[bool]string{}
			for _, set := range []bool{false, true} {
				more := []string{fmt.Sprintf(`"expose": [%q]`, surface)}
				if set {
					more = append(more, `"instructions": `+quote(own))
				}
				if surface == "tree" {
					more = append(more, `"tree": [{"path": "/a", "type": "node", "source": {"mcp": "alpha"}}]`)
				}
				config := mcptest.Config(t, document([]entry{alpha}, more...))
				stateless := mcptest.StartDynmcp(t, "-c", config).Call("server/discover", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`)
				later := unquoted(t, stateless.Member("instructions"))
				texts[set] = unquoted(t, mcptest.StartDynmcp(t, "-c", config).Call("initialize", hello).Member("instructions"))
				if set && !strings.HasPrefix(later, own) {
					t.Errorf("server/discover has the instructions %q", later)
				}
			}
			if want := strings.TrimSpace(own + "\n\n" + texts[false]); texts[true] != want {
				t.Errorf("got %q, want %q", texts[true], want)
			}
		})
	}
}

// unquoted returns a string of JSON, "" for none.
func unquoted(t *testing.T, text json.RawMessage) (s string) {
	t.Helper()
	if len(text) > 0 {
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
