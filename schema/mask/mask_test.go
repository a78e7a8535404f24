package mask

import (
	"strings"
	"testing"
)

// File keeps lines and references, and hides secrets.
func TestFile(t *testing.T) {
	for name, text := range map[string]string{
		"mcp.json": `{"mcpServers": {"a": {"command": "shown", "args": ["shown", "--api-key", "hidden", "--token=hidden", "TOKEN=hidden", "Server=shown;Password=hidden", "ghp_hidden"],
			"env": {"K": "hidden\"hidden", "R": "${shown}"}, "apiKey": "hidden"}, // shown
			"b": {"url": "https://user:hidden@b.test/x?k=hidden", "headers": {"X": "hidden"}, "auth": {"client_secret": "hidden"}}}}`,
		"mcp.yaml": "mcp:\n  a:\n    command: shown\n    args: [shown]\n    env:\n      K: hidden\n      L: |\n        hidden\n        hidden\n      R: ${shown}\n" +
			"    description: shown # shown\n  b:\n    url: https://b.test/?k=hidden\n    headers: {A: hidden, B: hidden}\n    args:\n    - --token\n    - hidden\n    - shown\n",
	} {
		got := string(File(name, []byte(text)))
		if strings.Contains(got, "hidden") || strings.Count(got, "shown") != strings.Count(text, "shown") {
			t.Errorf("%s is shown as\n%s", name, got)
		}
		if strings.Count(got, "\n") != strings.Count(text, "\n") {
			t.Errorf("%s: lines are gone:\n%s", name, got)
		}
	}
	if got := File("mcp.json", []byte(`{"env": {"K": "secret`)); got != nil {
		t.Errorf("a broken file is shown as %q", got)
	}
}
