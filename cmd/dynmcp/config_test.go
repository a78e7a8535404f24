package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What a config file may say, and how its errors are reported.

// testdata/cli2/errors.txtar has the texts of more errors.
func TestWrongConfigNamesThePlaceAndStartsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config string // GOOD is a server that would start
		want   []string
	}{
		{"an unknown key", "{\n  \"mcp\": {GOOD},\n  \"exposed\": []\n}", []string{"Invalid config file", "config.json:3:3: exposed:", `"expose"`}},
		{"no servers", `{"env": "process"}`, []string{"Invalid config file", "mcp"}},
		{"all errors at once", `{"mcp": {GOOD, "X": {"command": "y"}, "z": {"url": "u"}}, "expose": ["all"]}`, []string{"mcp.X", "mcp.z.url", "expose", "discover"}},
		{"not a config at all", "\x89PNG\r\n\x1a\n\x00\x00", []string{"config.json:1:1:"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			good := fake(t, "good")
			text := strings.ReplaceAll(c.config, "GOOD", `"good": `+string(mcptest.Raw(good.fields)))
			contains(t, fails(t, mcptest.HostOptions{Args: []string{"-c", mcptest.Config(t, text)}}), c.want...)
			nothingStarted(t, good)
		})
	}
}

// A variable that is not set switches off its server, and the model and the operator read
// why. Setting it in the .env beside the config switches the server on.
func TestMissingVariableSwitchesOffItsServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, off, on := fake(t, "good"), deferred(t, "off", "Does what is off").with("env", map[string]string{"T": "${OFF_TOKEN}"}), fake(t, "late", "-instructions", "${LATE_WORD}")
	config := writeFile(t, dir, "mcp.json", document([]entry{good, off, on}))
	host := mcptest.StartDynmcp(t, "-c", config)
	contains(t, host.WaitStderr("upstream=late"), "server is off", "upstream=off", "OFF_TOKEN is not set", "LATE_WORD is not set")
	greet(host)
	text := catalogue(t, host)
	contains(t, text, "- good/echo", "(off: OFF_TOKEN is not set)", "(off: LATE_WORD is not set)")
	lacks(t, text, "load_mcp", "tarting")
	contains(t, use(host, "off/echo", nil).Text(), "off: OFF_TOKEN is not set")
	contains(t, use(host, "good/echo", `{"n":1}`).Text(), `{"n":1}`)
	nothingStarted(t, off, on)

	writeFile(t, dir, ".env", "LATE_WORD=word\n")
	host.WaitStderr("config reloaded")
	contains(t, use(host, "late/echo", `{"n":2}`).Text(), `{"n":2}`)
	nothingStarted(t, off)
	end(t, host)

	contains(t, fails(t, mcptest.HostOptions{Args: []string{"--strict", "-c", config}}), "missing environment variable: OFF_TOKEN", "mcp.off.env.T")
}

func TestErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	config := `{"mcp": {"x": {"url": "https://user:hunter2@:bad:/${KEY}"}, "y": {"command": "${NOT_THERE}", "env": {"T": "${KEY}"}}}}`
	path := mcptest.Config(t, config)
	stderr := fails(t, mcptest.HostOptions{Args: []string{"-c", path, "--strict"}, Env: []string{"KEY=s3cr3t"}})
	lacks(t, stderr, "s3cr3t", "hunter2")
	lacks(t, runVerb(t, []string{"KEY=s3cr3t"}, 0, "ls", "-c", path), "s3cr3t", "hunter2")
}

// A server whose entry cannot be used is off, and the model, the operator and ls read why. Nothing else
// stops working. With --strict it is an error.
func TestABrokenEntryStandsAlone(t *testing.T) {
	t.Parallel()
	for broken, want := range map[string]string{
		`"bad": {"args": ["x.py"]}`:                             "mcp.bad: nothing says how to reach this server",
		`"bad": {"command": "x", "env": {"PORT": 8080}}`:        "mcp.bad.env.PORT: this is a number",
		`"bad": {"transport": "websocket", "url": "wss://x.y"}`: "invalid value",
		`"bad": {"comand": "x"}`:                                "mcp.bad.comand: unknown key",
		`"bad": {"command": "x", "command": "y"}`:               "mcp.bad.command: duplicate key",
		`"bad": "x"`:              "mcp.bad: this is text",
		`"Bad": {"command": "x"}`: "mcp.Bad: invalid server name",
	} {
		good := fake(t, "good")
		config := mcptest.Config(t, `{"mcp": {"good": `+string(mcptest.Raw(good.fields))+`, `+broken+`}}`)
		host := mcptest.StartDynmcp(t, "-c", config)
		contains(t, host.WaitStderr("upstream=bad"), "server is off", want)
		greet(host)
		checkEcho(t, host, "good/echo", `{"n":1}`)
		contains(t, catalogue(t, host), "- good/echo", "\n- bad (off: its entry cannot be used: ")
		contains(t, runVerb(t, nil, 0, "ls", "-c", config), "bad is off: its entry cannot be used: ", want)
		contains(t, fails(t, mcptest.HostOptions{Args: []string{"--strict", "-c", config}}), want)
		end(t, host)
	}
}

// TestVariablesByMode looks at one variable that the process has, one that .env
// has and one that both have.
func TestVariablesByMode(t *testing.T) {
	t.Parallel()
	const wanted = `${BOTH:-default}|${PROCESS:-default}|${FILE:-default}|${EMPTY:-default}|$${BOTH}|$|${open`
	for _, c := range []struct{ mode, want string }{
		{"", "file|process|file|default|${BOTH}|$|${open"},
		{`"env": "enable"`, "file|process|file|default|${BOTH}|$|${open"},
		{`"env": "dotenv"`, "file|default|file|default|${BOTH}|$|${open"},
		{`"env": "process"`, "process|process|default|default|${BOTH}|$|${open"},
		{`"env": "disable"`, wanted},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			var more []string
			if c.mode != "" {
				more = append(more, c.mode)
			}
			dir := t.TempDir()
			writeFile(t, dir, ".env", "# comment\n\nBOTH=\"file\"\nFILE=file\n")
			e := fake(t, "alpha").with("env", map[string]string{"SEEN": wanted})
			host := mcptest.Start(t, mcptest.HostOptions{
				Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{e}, more...))},
				Env:  []string{"BOTH=process", "PROCESS=process", "EMPTY="},
				Dir:  dir,
			})
			host.Initialize(handshake, nil)
			if got := use(host, "alpha/env", `{"name":"SEEN"}`).Text(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestVariablesReachArgumentsAndKeysStay(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha", "-instructions", "Bearer ${TOKEN} and ${TOKEN}").with("env", map[string]string{"${TOKEN}": "key"})
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{e}))},
		Env:  []string{"TOKEN=t0ken"},
	})
	host.Initialize(handshake, nil)
	contains(t, use(host, "alpha/args", nil).Text(), `"Bearer t0ken and t0ken"`)
	if got := use(host, "alpha/env", `{"name":"${TOKEN}"}`).Text(); got != "key" {
		t.Errorf("the key was changed, got %q", got)
	}
}

func TestChildGetsItsEnvironmentAndDirectory(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	all := fake(t, "all").with("env", map[string]string{"OWN": "own", "SHARED": "own"}).with("cwd", dir)
	few := fake(t, "few").with("inherit_env", []string{"SHARED"})
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{all, few}))},
		Env:  []string{"SHARED=inherited", "OTHER=inherited"},
	})
	host.Initialize(handshake, nil)
	for _, c := range []struct{ tool, name, want string }{
		{"all/env", "OWN", "own"}, {"all/env", "SHARED", "own"}, {"all/env", "OTHER", "inherited"},
		{"few/env", "SHARED", "inherited"}, {"few/env", "OTHER", ""},
	} {
		if got := use(host, c.tool, `{"name":`+quote(c.name)+`}`).Text(); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.tool, c.name, got, c.want)
		}
	}
	if got := use(host, "all/cwd", nil).Text(); got != dir {
		t.Errorf("got directory %s, want %s", got, dir)
	}
}

func TestOtherSpellingsOfAConfig(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	server := string(mcptest.Raw(e.fields))
	words := string(mcptest.Raw([]string{mcptest.Fake(t), "-name", "alpha"}))
	for file, text := range map[string]string{
		"comments.json": "// mine\n{\"mcp\": {\"alpha\": " + server + ",},}",
		"explicit.json": `{"mcp": {"alpha": ` + strings.Replace(server, "{", `{"transport":"stdio",`, 1) + `}}`,
		"hosts.json":    `{"mcpServers": {"Alpha": ` + strings.Replace(server, "{", `{"type":"stdio",`, 1) + `}}`,
		"browser.json":  `{"servers": {"alpha": {"command": ` + words + `}}}`,
		"one.yaml":      "# mine\nmcp:\n  alpha:\n    command: " + mcptest.Fake(t) + "\n    args: [-name, alpha]\n",
		"two.yml":       "mcp: {alpha: " + server + "}\n",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			host := mcptest.StartDynmcp(t, "-c", writeFile(t, t.TempDir(), file, text))
			host.Initialize(handshake, nil)
			checkEcho(t, host, "alpha/echo", `{}`)
		})
	}
}

func TestDisabledServerIsNotThere(t *testing.T) {
	t.Parallel()
	off := fake(t, "off").with("disabled", true)
	host := serve(t, off, fake(t, "on"))
	text := catalogue(t, host)
	contains(t, text, "- on/echo")
	lacks(t, text, "off")
	contains(t, use(host, "off/echo", nil).Text(), "Unknown tool: off/echo")
	nothingStarted(t, off)
}

func TestMissingCommandOfOneServerIsAWarning(t *testing.T) {
	t.Parallel()
	bad := entry{name: "bad", fields: map[string]any{"command": "no-such-command-anywhere"}}
	host := start(t, bad, fake(t, "good"))
	contains(t, host.WaitStderr("server cannot start"), "level=WARN", "upstream=bad", "no-such-command-anywhere")
	host.Initialize(handshake, nil)
	checkEcho(t, host, "good/echo", `{}`)
	contains(t, catalogue(t, host), "- good/echo", "Could not be started so far", "\n- bad")
}
