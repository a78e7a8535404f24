package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// whichConfig has, for each verb with --config, arguments that make it read or write a config which has the
// server s. Those that serve until they are stopped have none.
var whichConfig = map[string]string{
	"": "", "serve": "", "ui": "", "connect": "", "dev connect": "", "record": "", "dev record": "",

	"ls": "ls", "test": "test s", "warm": "warm s", "call": "call s/echo", "find": "find echo", "describe": "describe s/echo",
	"describe-servers": "describe-servers", "read": "read s", "prompt": "prompt s", "sandbox": "sandbox s", "policy": "policy", "policy test": "policy test s/echo",
	"doctor": "doctor", "tokens": "tokens", "login": "login s", "logout": "logout s", "ps": "ps", "answer": "answer 1", "use": "use all",
	"start": "start s", "stop": "stop s", "restart": "restart s", "log": "log", "stats": "stats", "diff": "diff s", "approve": "approve s",
	"outdated": "outdated", "update": "update s", "run": "run x.js", "verify": "verify s", "dev verify": "dev verify s", "install": "install codex", "import": "import codex",
	"add": "add other -- x", "remove": "remove s", "set": "set s timeout=3s --dry-run", "secret move": "secret move", "webhook test": "webhook test", "dev webhook test": "dev webhook test",
}

var (
	hasConfigFlag = regexp.MustCompile(`(?m)^ +-c, --config`)
	saysWritten   = regexp.MustCompile(`(?m)^(Added|Removed|Changed|Wrote) `)
)

// All verbs find the same config: that of the working directory, else that of the user; without one, they say
// how to make it.
func TestAllVerbsFindTheSameConfig(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the user's config is elsewhere")
	}
	t.Parallel()
	const none = "No config file found"
	home, empty := t.TempDir(), t.TempDir()
	config := filepath.Join(home, ".config", "dynmcp", "config.json")
	if err := os.MkdirAll(filepath.Dir(config), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(home, args string) string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t), strings.Fields(args)...)
		cmd.Dir = empty
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "DYNMCP_KEYRING=off")
		out, _ := cmd.CombinedOutput() // most fail, since the server does
		return string(out)
	}
	seen := 0
	for verb, help := range allHelp(t) {
		if !hasConfigFlag.MatchString(help) {
			continue
		}
		args, known := whichConfig[verb]
		switch {
		case !known:
			t.Errorf("the verb %q is not in the table", verb)
		case args == "":
		default:
			seen++
			if err := os.WriteFile(config, []byte(`{"mcp": {"s": {"command": "true"}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			if out := run(home, args); strings.Contains(out, none) || strings.Contains(out, `Unknown server "s"`) {
				t.Errorf("dynmcp %s does not find the user's config:\n%s", args, out)
			}
			if out := run(empty, args); !strings.Contains(out, none) && verb != "import" {
				t.Errorf("dynmcp %s finds a config where there is none:\n%s", args, out)
			}
		}
	}
	if seen < 25 {
		t.Errorf("only %d verbs were run", seen)
	}
}

// Verbs that write a config write the one that is named, else that of the working directory, else the user's, and
// name the user's before they do. No verb makes a second config where there is one, nor writes another than -c names.
func TestAllVerbsWriteTheSameConfig(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the user's config is elsewhere")
	}
	t.Parallel()
	const (
		near, yaml     = "here/mcp.json", "here/mcp.yaml"
		user, userYAML = "home/.config/dynmcp/config.json", "home/.config/dynmcp/config.yaml"
		full, bare     = `{"mcp": {"s": {"command": "true", "env": {"API_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}}`, `{"mcp": {}}`
	)
	states := []map[string]string{{near: full, user: full}, {user: full}, {}, {near: bare, user: full}, {near: full, user: bare}}
	for args, want := range map[string][5]string{
		"add o -- true":                    {near, user, "", near, near},
		"add o --user -- true":             {user, user, "", user, user},
		"add o --project -- true":          {near, "", "", near, near},
		"remove s":                         {near, user, "", "", near},
		"remove s --user":                  {user, user, "", user, ""},
		"set s timeout=3s":                 {near, user, "", user, near}, // the file that has it
		"set s timeout=3s --user":          {user, user, "", user, ""},
		"set s timeout=3s -c mcp.json":     {near, "", "", "", near},
		"secret move --secrets env --yes":  {near, user, "", "", near},
		"import codex --write":             {near, user, user, near, near},
		"import codex --write --user":      {user, user, user, user, user},
		"import codex --write --project":   {near, near, near, near, near},
		"import codex --write -c mcp.json": {near, near, near, near, near},
		"init":                             {"", near, near, "", ""},
		"init --yaml":                      {"", yaml, yaml, "", ""},
		"init --user":                      {"", "", user, "", ""},
		"init --user --yaml":               {"", "", userYAML, "", ""},
	} {
		for i, state := range states {
			dir := t.TempDir()
			files := map[string]string{"here/.keep": "", "home/.codex/config.toml": "[mcp_servers.c]\ncommand = \"true\"\n"}
			maps.Copy(files, state)
			for file, text := range files {
				path := filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t), strings.Fields(args)...)
			cmd.Dir = filepath.Join(dir, "here")
			cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_RUNTIME_DIR=", "DYNMCP_KEYRING=off")
			out, _ := cmd.CombinedOutput() // some are refused
			written := ""
			for _, file := range []string{near, yaml, user, userYAML} {
				if text, _ := os.ReadFile(filepath.Join(dir, file)); string(text) != state[file] {
					written += file
				}
			}
			if written != want[i] {
				t.Errorf("dynmcp %s with %v wrote %q, want %q:\n%s", args, state, written, want[i], out)
			}
			if at := saysWritten.FindIndex(out); written == user && !strings.Contains(args, "--user") && (at == nil || !strings.Contains(string(out[:at[0]]), user)) {
				t.Errorf("dynmcp %s does not name %s before it is written:\n%s", args, user, out)
			}
		}
	}
}
