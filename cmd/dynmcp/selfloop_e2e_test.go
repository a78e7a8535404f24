//go:build e2e

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

// Configs that lead on, and not back, are served to the depth that dynmcp allows.
func TestConfigsThatNameOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the command is a shell script")
	}
	dir, _ := nestConfigs(t, map[string][]string{
		"a": {"b", "e"}, "b": {"c"}, "c": {"d"}, "d": nil, "e": nil,
		"five": {"e", "c", "d", "g", "h"}, "g": nil, "h": nil,
		"pair": {"other"}, "other": {"pair"}, "of the pair": {"pair"},
	})
	wrapped := fake(t, "own")
	args := append([]string{"--", wrapped.fields["command"].(string)}, wrapped.fields["args"].([]string)...)
	wrap := entry{name: "wrap", fields: map[string]any{"command": mcptest.Dynmcp(t), "args": args}}
	nested := entry{name: "a", fields: map[string]any{"command": mcptest.Dynmcp(t), "args": []string{"-c", filepath.Join(dir, "b")}}}
	type path struct {
		names []string
		fails bool
	}
	for config, paths := range map[string][]path{
		filepath.Join(dir, "a"):                      {{nil, false}, {[]string{"b"}, false}, {[]string{"e"}, false}, {[]string{"b", "c"}, false}, {[]string{"b", "c", "d"}, true}},
		filepath.Join(dir, "b"):                      {{[]string{"c", "d"}, false}},
		filepath.Join(dir, "five"):                   {{[]string{"h"}, false}},
		filepath.Join(dir, "of the pair"):            {{[]string{"pair", "other"}, false}},
		mcptest.Config(t, document([]entry{nested})): {{[]string{"a", "c"}, false}},
	} {
		t.Run(filepath.Base(config), func(t *testing.T) {
			t.Parallel()
			host := mcptest.StartDynmcp(t, "-c", config)
			greet(host)
			for _, p := range paths {
				m := host.Tool("use_tool", callOwn(p.names...))
				if got := strings.Contains(string(m.Raw), ownAnswer); got == p.fails {
					t.Errorf("%q: got %s", p.names, m.Raw)
				}
			}
		})
	}
	host := mcptest.StartDynmcp(t, "-c", mcptest.Config(t, document([]entry{wrap})))
	greet(host)
	contains(t, string(host.Tool("use_tool", `{"tool_name":"wrap/use_tool","tool_input":{"tool_name":"echo","tool_input":{"text":"hi"}}}`).Raw), ownAnswer)
}

// A config that reaches itself is refused the second time, in a line that says where, and one
// that writes ever new configs at the fourth. Each way leads through a script that counts its
// runs and ends after twenty, so that a failure ends by itself. Of what ran, nothing is left
// behind a kill either.
func TestConfigThatReachesItself(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the ways are shell scripts")
	}
	ends := map[string]func(t *testing.T, host *mcptest.Host){"end": func(t *testing.T, host *mcptest.Host) { end(t, host) }}
	if runtime.GOOS == "linux" {
		ends["kill"] = func(t *testing.T, host *mcptest.Host) {
			host.Kill()
			mcptest.WaitVanished(t, host.Marker())
		}
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSelfLoops(t, end)
		})
	}
}

func testSelfLoops(t *testing.T, end func(t *testing.T, host *mcptest.Host)) {
	const everNew = "ever new configs"
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
		everNew:              `sed "s/way\"/way\",\"$$\"/" "$DIR/a.json" >"$DIR/$$.json" && exec "$DYNMCP" -c "$DIR/$$.json"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			count := filepath.Join(dir, "count")
			writeFile(t, dir, "way", fmt.Sprintf("DIR=%q DYNMCP=%q\necho x >>%q\n[ $(wc -l <%q) -lt 20 ] || exit 1\nexec 2>>%q\n%s\n", dir, dynmcp, count, count, filepath.Join(dir, "stderr"), way))
			config := fmt.Sprintf(`{"mcp": {"loop": {"command": "bash", "args": [%q], "inherit_env": false}}}`, filepath.Join(dir, "way"))
			writeFile(t, dir, "a.json", config)
			writeFile(t, dir, "project/mcp.json", config)
			writeFile(t, dir, "back", fmt.Sprintf("exec 2>>%q %q -c %q\n", filepath.Join(dir, "stderr"), dynmcp, filepath.Join(dir, "a.json")))
			writeFile(t, dir, "b.json", fmt.Sprintf(`{"mcp": {"back": {"command": "bash", "args": [%q]}}}`, filepath.Join(dir, "back")))

			host := mcptest.StartDynmcp(t, "-c", filepath.Join(dir, "a.json"))
			greet(host)
			host.Tool("use_tool", `{"tool_name":"loop/x"}`)
			want := "the config reaches itself: "
			if name == everNew {
				want = "dynmcp is nested 4 deep: "
			}
			var said []byte
			var err error
			mcptest.Eventually(t, "the way is refused", func() bool { // a call does not wait for a slow start
				said, err = os.ReadFile(filepath.Join(dir, "stderr"))
				return strings.Contains(string(said), want)
			})
			end(t, host)
			if err != nil || !strings.Contains(string(said), want) {
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
