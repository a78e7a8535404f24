package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Servers that an earlier run listed are known, searched and shown, and start at the first
// call.

// A remembered config is one whose runs share the stored listings.
type remembered struct {
	t      *testing.T
	config string
	dir    string
}

func remembering(t *testing.T, entries []entry, more ...string) remembered {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	more = append(more, `"catalog": {"dir": `+quote(dir)+`}`)
	return remembered{t, mcptest.Config(t, document(entries, more...)), dir}
}

// run starts dynmcp on the config.
func (m remembered) run(args ...string) *mcptest.Host {
	m.t.Helper()
	return mcptest.StartDynmcp(m.t, append([]string{"-c", m.config}, args...)...)
}

func (m remembered) command(args ...string) *exec.Cmd {
	cmd := exec.Command(mcptest.Dynmcp(m.t), append(args, "-c", m.config)...)
	cmd.Env = mcptest.Environ(m.t)
	return cmd
}

// verb runs a verb on the config.
func (m remembered) verb(args ...string) {
	m.t.Helper()
	runVerb(m.t, mcptest.Environ(m.t), 0, append(args, "-c", m.config)...)
}

// learn lists every server once.
func (m remembered) learn(servers ...string) {
	m.t.Helper()
	host := m.run()
	host.Initialize(handshake, nil)
	for _, server := range servers {
		contains(m.t, discover(host, `{"server":`+quote(server)+`}`).Text(), server)
	}
	end(m.t, host)
}

func TestServersOfAnEarlierRunAreKnown(t *testing.T) {
	t.Parallel()
	alpha := deferred(t, "alpha", "The first", "-instructions", "Alpha says hello.")
	m := remembering(t, []entry{alpha, deferred(t, "later", "Never started")})
	m.learn("alpha")
	starts := alpha.Count("start")

	host := m.run()
	greet(host)
	contains(t, discover(host, `{"query":"echo"}`).Text(), "alpha/echo")
	contains(t, discover(host, `{"tool_name":"alpha/echo"}`).Text(), "Name: alpha/echo", "Input Schema:")
	contains(t, discover(host, `{"server":"alpha"}`).Text(), "started when used", "- alpha/echo", "Alpha says hello.")
	contains(t, discover(host, `{}`).Text(), "alpha (28 tools, started when used): The first", "later (no tools known, call load_mcp)")
	contains(t, discover(host, `{"tool_name":"alpha/ecko"}`).Text(), "Did you mean: alpha/echo")
	contains(t, string(host.Call("resources/list", nil).Raw), `"fake://alpha/text"`)
	contains(t, string(host.Call("prompts/list", nil).Raw), `"alpha.greet"`)
	contains(t, block(catalogue(t, host), "mcp_servers"), "- alpha: The first")
	if n := alpha.Count("start") - starts; n != 0 {
		t.Errorf("it was started %d times to be shown", n)
	}
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
	if n := alpha.Count("start") - starts; n != 1 {
		t.Errorf("it was started %d times to be called", n)
	}
}

func TestPromptAndResourceOfAStoredServerStartIt(t *testing.T) {
	t.Parallel()
	alpha := deferred(t, "alpha", "The first")
	m := remembering(t, []entry{alpha})
	m.learn("alpha")
	host := m.run()
	greet(host)
	contains(t, string(host.Call("prompts/get", `{"name":"alpha.greet","arguments":{"name":"Ada"}}`).Raw), "Ada")
	contains(t, string(host.Call("resources/read", `{"uri":"fake://alpha/text"}`).Raw), "fake://alpha/text")
	if n := alpha.Count("start"); n != 2 {
		t.Errorf("it was started %d times", n)
	}
}

// Lists do not wait for a known eager server, and nothing is announced when it lists the same
// again.
func TestKnownEagerServerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	gate := mcptest.NewGate(t)
	gate.Open()
	alpha := fake(t, "alpha", "-fault", "gate-init:"+gate.Path)
	m := remembering(t, []entry{alpha})
	m.learn("alpha")
	if err := os.Remove(gate.Path); err != nil {
		t.Fatal(err)
	}
	host := m.run() // startup_wait is a minute
	greet(host)
	before := catalogue(t, host)
	contains(t, block(before, "tools"), "alpha/echo")
	pending := host.Go("tools/call", useParams("alpha/echo", `{"n":1}`))
	gate.Open()
	if got := pending.Wait().Text(); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
	settle(t, host, "alpha")
	if after := catalogue(t, host); after != before {
		t.Errorf("the same listing reads otherwise: %s\n%s", before, after)
	}
	if n := host.Count(toolsChanged); n != 0 {
		t.Errorf("%d announcements without a change", n)
	}
}

func TestDirectToolsOfServersThatDoNotRun(t *testing.T) {
	t.Parallel()
	alpha, beta := deferred(t, "alpha", "A"), deferred(t, "beta", "B")
	m := remembering(t, []entry{alpha, beta}, `"expose": ["discover", "direct"]`)
	m.learn("alpha", "beta")
	host := m.run()
	greet(host)
	before := string(host.Call("tools/list", nil).Member("tools"))
	contains(t, before, `"alpha__echo"`, `"beta__echo"`)
	if n := alpha.Count("start") + beta.Count("start"); n != 2 {
		t.Errorf("%d starts, want the 2 of before", n)
	}
	if got := host.Tool("beta__echo", `{"n":1}`).Text(); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
	if n := alpha.Count("start"); n != 1 {
		t.Errorf("alpha was started %d times", n)
	}
}

// A damaged listing is a warning, and its server counts as unknown.
func TestDamagedCatalogueCostsAWarning(t *testing.T) {
	t.Parallel()
	alpha := deferred(t, "alpha", "The first")
	m := remembering(t, []entry{alpha, deferred(t, "beta", "The second")})
	m.learn("alpha", "beta")
	listings, err := filepath.Glob(filepath.Join(m.dir, "*"))
	if err != nil || len(listings) != 2 {
		t.Fatalf("got %q, %v", listings, err)
	}
	for _, path := range listings {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"server":"alpha"`) {
			writeFile(t, m.dir, filepath.Base(path), strings.Replace(string(text), "echo", "ecko", 1))
		}
	}
	host := m.run()
	greet(host)
	contains(t, host.Stderr(), "upstream=alpha", "it is damaged")
	lacks(t, host.Stderr(), "upstream=beta")
	text := discover(host, `{"query":"echo"}`).Text()
	contains(t, text, "beta/echo")
	lacks(t, text, "alpha/echo")
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
	end(t, host)

	host = m.run()
	greet(host)
	contains(t, discover(host, `{"query":"echo"}`).Text(), "alpha/echo")
	lacks(t, host.Stderr(), "damaged")
}

func TestCatalogueThatCannotBeWrittenCostsAWarning(t *testing.T) {
	t.Parallel()
	file := writeFile(t, t.TempDir(), "file", "")
	config := mcptest.Config(t, document([]entry{deferred(t, "alpha", "The first")}, `"catalog": {"dir": `+quote(filepath.Join(file, "catalog"))+`}`))
	host := mcptest.StartDynmcp(t, "-c", config)
	greet(host)
	load(host, "alpha")
	contains(t, host.WaitStderr("a listing is not kept"), "upstream=alpha")
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
}

func TestNothingIsKeptWhereTheConfigSaysSo(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	config := mcptest.Config(t, document([]entry{deferred(t, "alpha", "The first")}, `"catalog": {"dir": ""}, "activity": false`))
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: []string{"XDG_STATE_HOME=" + state}})
	greet(host)
	load(host, "alpha")
	end(t, host)
	_ = filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			t.Errorf("left is %s, %v", path, err)
		}
		return nil
	})
}

func TestCatalogueIsInTheStateDirectory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere it is where the system has such things")
	}
	state := t.TempDir()
	config := mcptest.Config(t, document([]entry{deferred(t, "alpha", "The first")}))
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config}, Env: []string{"XDG_STATE_HOME=" + state}})
	greet(host)
	load(host, "alpha")
	end(t, host)
	if kept, err := filepath.Glob(filepath.Join(state, "dynmcp", "catalog", "*.listing")); err != nil || len(kept) != 1 {
		t.Errorf("got %q, %v", kept, err)
	}
}

// A listing is not used when the entry has changed.
func TestChangedEntryIsNotKnown(t *testing.T) {
	t.Parallel()
	alpha := deferred(t, "alpha", "The first")
	m := remembering(t, []entry{alpha})
	m.learn("alpha")
	text, err := os.ReadFile(m.config)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Dir(m.config), filepath.Base(m.config), strings.Replace(string(text), `"-name"`, `"-bare","-tools","2","-name"`, 1))
	host := m.run()
	greet(host)
	lacks(t, discover(host, `{"query":"echo"}`).Text(), "alpha/echo")
	contains(t, discover(host, `{"server":"alpha"}`).Text(), "alpha/tool_001") // it was started for that
}
