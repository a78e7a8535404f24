package main

import (
	"context"
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

var hasConfigFlag = regexp.MustCompile(`(?m)^ +-c, --config`)

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
