package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

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

// freeAddress is where a gateway can listen whose config says so.
func freeAddress(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// A gateway that is its own server says so at once: the first list waits for nothing, what
// it lists does not grow, and it ends when it is told to.
func TestGatewayThatIsItsOwnServer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	config := mcptest.Config(t, fmt.Sprintf(`{"expose":["direct"],"mcp":{"alpha":%s,"self":{"url":"http://%s/mcp"}}}`, mcptest.Raw(fake(t, "alpha").fields), address))
	run := serveHTTP(t, config, "--http", address)
	host := mcptest.NewClient(t, run.url+"/mcp")
	host.Initialize(handshake, nil)
	began := time.Now()
	for range 3 {
		if list := host.Call("tools/list", nil).Raw; !strings.Contains(list, `"alpha__echo"`) || strings.Contains(list, "self__") {
			t.Errorf("got %.300s", list)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("three lists took %v", took)
	}
	run.dynmcp.WaitStderr(`the config reaches itself: the server \"self\" of ` + filepath.Base(config) + ` leads back`)
	began = time.Now()
	run.dynmcp.Signal(syscall.SIGTERM)
	run.dynmcp.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestGatewaysThatAreEachOthersServers(t *testing.T) {
	t.Parallel()
	at := []string{freeAddress(t), freeAddress(t)}
	var runs []*webHost
	for i, name := range []string{"alpha", "beta"} {
		config := mcptest.Config(t, fmt.Sprintf(`{"expose":["direct"],"mcp":{%q:%s,"other":{"url":"http://%s/mcp"}}}`, name, mcptest.Raw(fake(t, name).fields), at[1-i]))
		runs = append(runs, serveHTTP(t, config, "--http", at[i]))
	}
	mcptest.Eventually(t, "one of them says it", func() bool {
		return strings.Contains(runs[0].dynmcp.Stderr()+runs[1].dynmcp.Stderr(), "the config reaches itself")
	})
	for _, run := range runs {
		host := mcptest.NewClient(t, run.url+"/mcp")
		host.Initialize(handshake, nil)
		for range 3 {
			if list := host.Call("tools/list", nil).Raw; strings.Contains(list, "other__other__") {
				t.Errorf("got %.300s", list)
			}
		}
	}
}
