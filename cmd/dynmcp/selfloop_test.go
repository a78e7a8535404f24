package main_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// freeAddress returns an address for a gateway whose config has to name it.
func freeAddress(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// A gateway that is its own server says so at once. The first list does not wait, later lists
// do not grow, and a signal ends it.
func TestGatewayThatIsItsOwnServer(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	config := mcptest.Config(t, fmt.Sprintf(`{"expose":["direct"],"startup_wait":"3s","mcp":{"alpha":%s,"self":{"url":"http://%s/mcp"}}}`, mcptest.Raw(fake(t, "alpha").fields), address))
	run := serveHTTP(t, config, "--http", address)
	mcptest.Soon(t, "it says so", func() bool {
		return strings.Contains(run.dynmcp.Stderr(), `the config reaches itself: the server \"self\" of `+filepath.Base(config)+` leads back`)
	})
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
	mcptest.Soon(t, "one of them says it", func() bool {
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

// nestConfigs writes configs by name. Each has a server own, and a server for each config that it
// names. The command of the latter adds a line to the file started.
func nestConfigs(t *testing.T, names map[string][]string) (dir, started string) {
	t.Helper()
	dir = t.TempDir()
	started = filepath.Join(dir, "started")
	script := fmt.Sprintf("#!/bin/sh\necho \"$2\" >>%q\nexec %q \"$@\"\n", started, mcptest.Dynmcp(t))
	command := writeProgram(t, dir, "dynmcp", script)
	for name, others := range names {
		entries := []entry{fake(t, "own")}
		for _, other := range others {
			entries = append(entries, entry{name: other, fields: map[string]any{"command": command, "args": []string{"-c", filepath.Join(dir, other)}}})
		}
		writeFile(t, dir, name, document(entries))
	}
	return dir, started
}

// ownAnswer is part of the answer to a call with the arguments of callOwn.
const ownAnswer = `"structuredContent":{"text":"hi"}`

// callOwn returns the arguments of use_tool that call the server own of the config at the end
// of the path.
func callOwn(path ...string) string {
	input := `{"tool_name":"own/echo","tool_input":{"text":"hi"}}`
	for _, name := range slices.Backward(path) {
		input = fmt.Sprintf(`{"tool_name":"%s/use_tool","tool_input":%s}`, name, input)
	}
	return input
}

// Of configs that all name each other the first starts three, which start none, and reports
// the others: four runs, and the guards and servers of each.
func TestConfigsThatNameEachOther(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("processes are found by their environment on Linux only")
	}
	all := []string{"a", "b", "c", "d", "e", "f"}
	names := map[string][]string{}
	for _, name := range all {
		names[name] = slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == name })
	}
	dir, started := nestConfigs(t, names)
	host := mcptest.StartDynmcp(t, "-c", filepath.Join(dir, "a"))
	var most int
	watched, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for ticker := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-ticker.C:
				most = max(most, len(mcptest.Processes(host.Marker())))
			case <-stop:
				ticker.Stop()
				return
			}
		}
	}()
	greet(host)
	const runs = 4
	for i, name := range all[1:] {
		got := string(host.Tool("use_tool", callOwn(name)).Raw)
		if served := strings.Contains(got, ownAnswer); served != (i < runs-1) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	const leftOut = "e: this server is dynmcp with one of more than 4 configs that name each other and is left out"
	mcptest.Soon(t, "it is said: "+leftOut, func() bool { return strings.Contains(host.Stderr(), leftOut) })
	close(stop)
	<-watched
	most = max(most, len(mcptest.Processes(host.Marker()))) // all run until the host ends, though the ticker may have missed them
	// A run and a server of its own for each config, and a guard for each but the first run.
	if bound := 4*runs - 1; most > bound || most < runs {
		t.Errorf("%d processes at once, want %d at most", most, bound)
	}
	end(t, host)
	mcptest.WaitVanished(t, host.Marker())
	text, err := os.ReadFile(started)
	if got := strings.Fields(string(text)); err != nil || len(got) != runs-1 {
		t.Errorf("started: %v, %v", got, err)
	}
}
