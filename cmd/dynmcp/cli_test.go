package main_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Runs of dynmcp that end by themselves: what they print on stderr, and their exit status.

// fails runs dynmcp, which must end with status 1 and nothing on stdout, and
// returns its stderr.
func fails(t *testing.T, opts mcptest.HostOptions) string {
	t.Helper()
	opts.Args = append([]string{mcptest.Dynmcp(t)}, opts.Args...)
	host := mcptest.Start(t, opts)
	if code := host.Wait(); code != 1 {
		t.Errorf("got exit status %d, want 1", code)
	}
	if lines := host.Lines(); len(lines) > 0 {
		t.Errorf("stdout belongs to the protocol, got %q", lines)
	}
	return host.Stderr()
}

func TestConfigIsFoundInWorkingDirectory(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	dir := t.TempDir()
	writeFile(t, dir, "mcp.json", document([]entry{e}))
	host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t)}, Dir: dir})
	host.Initialize(handshake, nil)
	checkEcho(t, host, "alpha/echo", `{"n":1}`)
}

func TestFlagsNameTheConfigAndTheEnvFile(t *testing.T) {
	t.Parallel()
	for config, env := range map[string]string{"-c": "-e", "--config": "--env"} {
		e := deferred(t, "named", "Named by "+config+" and ${GREETING}")
		host := mcptest.StartDynmcp(t, config, mcptest.Config(t, document([]entry{e})), env, writeFile(t, t.TempDir(), "custom", "GREETING=by the file\n"))
		host.Initialize(handshake, nil)
		contains(t, catalogue(t, host), "- named: Named by "+config+" and by the file")
	}
}

func TestWordsAfterTheCommandPassUntouched(t *testing.T) {
	t.Parallel()
	words := []string{"-name", "-y", "-instructions", "two  words", "-uri-prefix", "--", "-ledger", ""}
	host := wrap(t, words...)
	var got []string
	if err := json.Unmarshal([]byte(use(host, "args", nil).Text()), &got); err != nil {
		t.Fatal(err)
	}
	if want := append([]string{mcptest.Fake(t)}, words...); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCommandWithoutArguments(t *testing.T) {
	t.Parallel()
	host := wrap(t)
	if got, want := use(host, "args", nil).Text(), string(mcptest.Raw([]string{mcptest.Fake(t)})); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestCommandThatDiesAtStartShowsItsLastWords(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"exit-now", "exit-on-init", "fail-init", "exit-on-list", "fail-list:tools"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			host := mcptest.StartDynmcp(t, "--", mcptest.Fake(t), "-fault", fault)
			answer := host.Call("initialize", hello)
			if answer.Error == nil {
				t.Errorf("initialize was answered with %s", answer.Result)
			}
			if code := host.Wait(); code != 1 {
				t.Errorf("got exit status %d, want 1", code)
			}
			switch fault {
			case "exit-now":
				contains(t, host.Stderr(), "API_KEY is not set", "giving up", "exited with status 7")
			case "exit-on-init":
				contains(t, host.Stderr(), "fakemcp: fatal: initialize", "exited with status 4")
			case "fail-init":
				contains(t, host.Stderr(), "initialize: refused as asked")
			case "exit-on-list":
				contains(t, host.Stderr(), "fakemcp: fatal:", "exited with status 4")
			default:
				contains(t, host.Stderr(), "tools/list: refused as asked")
			}
		})
	}
}

func TestCommandThatDiesBeforeAnyHostSpeaks(t *testing.T) {
	t.Parallel()
	contains(t, fails(t, mcptest.HostOptions{Args: []string{"--", mcptest.Fake(t), "-fault", "exit-now"}}),
		"last lines of its stderr:\n  fakemcp: starting\n  fakemcp: API_KEY is not set\n  fakemcp: giving up")
}

func TestConfigAndCommandExcludeEachOther(t *testing.T) {
	t.Parallel()
	e := fake(t, "alpha")
	stderr := fails(t, mcptest.HostOptions{Args: []string{"-c", mcptest.Config(t, document([]entry{e})), "--", mcptest.Fake(t), "-ledger", e.Path}})
	contains(t, stderr, "exclude each other")
	nothingStarted(t, e)
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"a command without dashes", []string{"npx"}, []string{`unknown command "npx"`, "hint: to wrap a server, write: dynmcp -- npx"}},
		{"a slip in a verb", []string{"imprt"}, []string{`unknown command "imprt"`, "hint: did you mean dynmcp import?", "dynmcp -- imprt"}},
		{"words before the dashes", []string{"npx", "--", "x"}, []string{`unknown command "npx"`}},
		{"a recording without a flag", []string{"record", "run.jsonl"}, []string{`dynmcp: unexpected argument "run.jsonl"`, "hint: dynmcp record --help"}},
		{"an unknown flag", []string{"--wrong"}, []string{"unknown flag: --wrong", "hint: dynmcp --help"}},
		{"a flag without its value", []string{"-c"}, []string{"flag needs an argument"}},
		{"an unknown log level", []string{"--log-level", "loud", "--", "x"}, []string{`unknown log level "loud"`, "debug, info, warn or error"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			contains(t, fails(t, mcptest.HostOptions{Args: c.args}), c.want...)
		})
	}
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--version": "dynmcp ", "--help": "dynmcp [flags] [-- command args…]"} {
		host := mcptest.StartDynmcp(t, flag)
		if code := host.Wait(); code != 0 {
			t.Errorf("%s: got exit status %d", flag, code)
		}
		var out string
		for _, line := range host.Lines() {
			out += line + "\n"
		}
		contains(t, out, want)
		if host.Stderr() != "" {
			t.Errorf("%s: stderr holds %q", flag, host.Stderr())
		}
	}
}

func TestStrictMakesAFailedStartFatal(t *testing.T) {
	t.Parallel()
	good := fake(t, "good")
	for _, c := range []struct {
		name string
		bad  entry
		want string
	}{
		{"command not there", entry{name: "bad", fields: map[string]any{"command": "no-such-command-anywhere"}}, "on PATH"},
		{"dies at start", fake(t, "bad", "-fault", "exit-now"), "API_KEY is not set"},
		{"cannot be reached", entry{name: "bad", fields: map[string]any{"url": nobodyListens(t)}}, "refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			config := mcptest.Config(t, document([]entry{good, c.bad}))
			contains(t, fails(t, mcptest.HostOptions{Args: []string{"--strict", "-c", config}}), "bad", c.want)
		})
	}
}

func TestStrictLeavesLazyServersAlone(t *testing.T) {
	t.Parallel()
	good := fake(t, "good")
	lazy := deferred(t, "later", "Not now", "-fault", "exit-now")
	gone := entry{name: "gone", fields: map[string]any{"command": "no-such-command-anywhere", "description": "Not there"}}
	host := mcptest.StartDynmcp(t, "--strict", "-c", mcptest.Config(t, document([]entry{good, lazy, gone})))
	host.Initialize(handshake, nil)
	contains(t, catalogue(t, host), "- good/echo:", "- later: Not now", "- gone: Not there")
	nothingStarted(t, lazy)
}

// nothingStarted fails the test if the fake behind an entry ever ran.
func nothingStarted(t *testing.T, entries ...entry) {
	t.Helper()
	for _, e := range entries {
		if events := e.Events(); len(events) > 0 {
			t.Errorf("%s was started: %q", e.name, events)
		}
	}
}
