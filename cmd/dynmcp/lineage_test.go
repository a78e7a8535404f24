package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// However a config reaches itself, it is refused the second time, in a line
// that says where. Each way leads through a script that counts how often it was
// taken and leads nowhere after twenty times, so that a failure ends by itself.
func TestConfigThatReachesItself(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the ways are shell scripts")
	}
	dynmcp := mcptest.Dynmcp(t)
	for name, way := range map[string]string{
		"sh":                 `exec "$DYNMCP" -c "$DIR/a.json"`,
		"env":                `exec env "$DYNMCP" --config="$DIR/a.json"`,
		"a child of a shell": `"$DYNMCP" -c "$DIR/a.json"; exit $?`,
		"another name":       `cp "$DYNMCP" "$DIR/mcp-files" && exec "$DIR/mcp-files" -c "$DIR/a.json"`,
		"another file":       `exec "$DYNMCP" -c <(cat "$DIR/a.json")`,
		"a wrap":             `exec "$DYNMCP" -- "$DYNMCP" -c "$DIR/a.json"`,
		"another config":     `exec "$DYNMCP" -c "$DIR/b.json"`,
		"the directory":      `cd "$DIR/project" && exec "$DYNMCP"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			count := filepath.Join(dir, "count")
			write("way", fmt.Sprintf("DIR=%q DYNMCP=%q\necho x >>%q\n[ $(wc -l <%q) -lt 20 ] || exit 1\nexec 2>>%q\n%s\n", dir, dynmcp, count, count, filepath.Join(dir, "stderr"), way))
			config := fmt.Sprintf(`{"mcp": {"loop": {"command": "bash", "args": [%q], "inherit_env": false}}}`, filepath.Join(dir, "way"))
			write("a.json", config)
			write("project/mcp.json", config)
			write("back", fmt.Sprintf("exec 2>>%q %q -c %q\n", filepath.Join(dir, "stderr"), dynmcp, filepath.Join(dir, "a.json")))
			write("b.json", fmt.Sprintf(`{"mcp": {"back": {"command": "bash", "args": [%q]}}}`, filepath.Join(dir, "back")))

			host := mcptest.StartDynmcp(t, "-c", filepath.Join(dir, "a.json"))
			greet(host)
			host.Tool("use_tool", `{"tool_name":"loop/x"}`)
			host.CloseStdin()
			host.Wait()
			said, err := os.ReadFile(filepath.Join(dir, "stderr"))
			if err != nil || !strings.Contains(string(said), "the config reaches itself: ") {
				t.Errorf("got %s, %v", said, err)
			}
			times, err := os.ReadFile(count)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(times), "x"); n >= 20 {
				t.Errorf("the way was taken %d times", n)
			}
		})
	}
}
