//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// pinned returns a config whose servers must be approved and have been listed.
func pinned(t *testing.T, entries []entry, more ...string) remembered {
	t.Helper()
	for i := range entries {
		entries[i] = entries[i].with("pins", "block")
	}
	m := remembering(t, entries, more...)
	m.verb("warm")
	return m
}

var locked = regexp.MustCompile(`(?m)^tool (\S+) (\S+) `)

// approved returns the tools of the lock.
func (m remembered) approved() (names []string) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(m.config), "dynmcp.lock"))
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	for _, match := range locked.FindAllSubmatch(text, -1) {
		names = append(names, string(match[1])+"/"+string(match[2]))
	}
	slices.Sort(names)
	return names
}

// Each tool is shown before its question. The lock holds the tools that a person approved.
func TestApproveAsks(t *testing.T) {
	t.Parallel()
	const question = "[y]es, [n]o, [a]ll of "
	shared := pinned(t, []entry{fake(t, "alpha", "-bare", "-tools", "2"), fake(t, "beta", "-bare", "-tools", "2")})
	config, err := os.ReadFile(shared.config)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		answers  []string // to one question each
		approved []string
		says     string // at the end
	}{
		"each":            {[]string{"y\n", "n\n", "YES\n", "\n"}, []string{"alpha/tool_001", "beta/tool_001"}, "2 approved, 2 not."},
		"all of a server": {[]string{"a\n", "n\n", "no\n"}, []string{"alpha/tool_001", "alpha/tool_002"}, "2 approved, 2 not."},
		"all of both":     {[]string{"n\n", "all\n", "A\n"}, []string{"alpha/tool_002", "beta/tool_001", "beta/tool_002"}, "3 approved, 1 not."},
		"quit":            {[]string{"y\n", "q\n"}, []string{"alpha/tool_001"}, "1 approved, 3 not."},
		"no more input":   {[]string{"y\n", "\x04"}, []string{"alpha/tool_001"}, "1 approved, 3 not."},
		"what is no word": {[]string{"maybe\n", "yess\n", "y y\n", "of course\n"}, nil, "0 approved, 4 not."},
		"interrupted":     {[]string{"y\n", "\x03"}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := remembered{t, mcptest.Config(t, string(config)), shared.dir} // with a lock of its own
			screen := onTerminal(t, m.command("approve"))
			for _, answer := range test.answers {
				screen.waitFor("[q]uit: ")
				screen.types(answer)
			}
			err := screen.wait()
			text := screen.text()
			if (err != nil) != (name == "interrupted") || !strings.Contains(text, test.says) || strings.Count(text, question) != len(test.answers) {
				t.Errorf("%v, %d questions\n%s", err, strings.Count(text, question), text)
			}
			if shown, asked := strings.Index(text, "new     tool_001"), strings.Index(text, "Approve alpha/tool_001?"); shown < 0 || asked < shown {
				t.Errorf("a tool is not shown before its question:\n%s", text)
			}
			if diff := cmp.Diff(test.approved, m.approved()); diff != "" {
				t.Errorf("the lock (-want +got):\n%s", diff)
			}
		})
	}
}

// A run notices an approval by another process: it announces the changed list, and the tool
// can be called.
func TestRunFollowsAnApproval(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, m remembered) *mcptest.Conn{
		"stdio": func(t *testing.T, m remembered) *mcptest.Conn {
			host := m.run()
			host.Initialize(handshake, nil)
			return host.Conn
		},
		"stdio, and the lock is elsewhere": func(t *testing.T, m remembered) *mcptest.Conn {
			target := writeFile(t, t.TempDir(), "lock", "dynmcp-lock 1\n")
			if err := os.Symlink(target, filepath.Join(filepath.Dir(m.config), "dynmcp.lock")); err != nil {
				t.Fatal(err)
			}
			host := m.run()
			host.Initialize(handshake, nil)
			return host.Conn
		},
		"serve": func(t *testing.T, m remembered) *mcptest.Conn {
			socket := socketPath(t)
			serveOn(t, socket, m.config)
			host := dial(t, socket)
			host.Initialize(handshake, nil)
			return host
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := pinned(t, []entry{fake(t, "alpha", "-bare", "-tools", "2")}, `"expose": ["direct"]`)
			host := connect(t, m)
			call := func(tool string) mcptest.Message {
				return host.Call("tools/call", `{"name":"`+tool+`","arguments":{}}`)
			}
			listed := func() string { return string(host.Call("tools/list", `{}`).Raw) }
			if got := listed(); strings.Contains(got, "tool_001") {
				t.Fatalf("a tool that is not approved is listed: %s", got)
			}
			if m := call("alpha__tool_001"); !m.IsError() && m.Error == nil {
				t.Errorf("a tool that is not approved is called: %s", m.Raw)
			}
			before := host.Count(toolsChanged)
			m.verb("approve", "alpha/tool_001", "--all")
			host.WaitMethod(toolsChanged, before+1)
			if got := listed(); !strings.Contains(got, "tool_001") || strings.Contains(got, "tool_002") {
				t.Errorf("after the approval: %s", got)
			}
			if m := call("alpha__tool_001"); m.IsError() || m.Error != nil {
				t.Errorf("after the approval: %s", m.Raw)
			}
		})
	}
}

// The lock is committed to version control, so no verb writes a secret of the command line
// into it.
func TestLockHasNoSecrets(t *testing.T) {
	t.Parallel()
	const token = "canary-of-the-lock"
	server := fake(t, "alpha", "-bare", "-tools", "1")
	runner := writeProgram(t, t.TempDir(), "uvx", "#!/bin/sh\nshift 2\nexec '"+server.fields["command"].(string)+"' \"$@\"\n")
	args := append([]string{"--from", "git+https://me:${TOKEN}@git.example.com/server"}, server.fields["args"].([]string)...)
	m := remembering(t, []entry{server.with("pins", "warn").with("command", runner).with("args", args)})
	writeFile(t, filepath.Dir(m.config), ".env", "TOKEN="+token+"\n")
	lock := filepath.Join(filepath.Dir(m.config), "dynmcp.lock")
	for _, verb := range [][]string{{"warm"}, {"approve", "--all"}} {
		m.verb(verb...)
		text, err := os.ReadFile(lock)
		if err != nil || !strings.Contains(string(text), "git.example.com/server") || strings.Contains(string(text), token) {
			t.Errorf("after %v the lock has %q, %v", verb, text, err)
		}
		if err := os.Remove(lock); err != nil {
			t.Fatal(err)
		}
	}
}
