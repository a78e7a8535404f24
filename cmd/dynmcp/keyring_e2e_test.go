//go:build e2e && linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// TestARealKeyring keeps secrets in GNOME's keyring on a session bus of its own: they are
// set, listed, found by a server, moved there by import and removed. No other test talks to a
// real keyring, so it fails without those programs, and says what to install. .ci/e2e
// installs them, or reports that it leaves the test out.
func TestARealKeyring(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dbus-run-session", "gnome-keyring-daemon", "secret-tool"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("NO KEYRING WAS TESTED: %v; apt-get install dbus gnome-keyring libsecret-tools", err)
		}
	}
	dir := t.TempDir()
	runtime, err := os.MkdirTemp("", "bus") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtime) })
	for name, text := range map[string]string{
		"mcp.json":  `{"mcp": {"real": {"command": "fakemcp", "env": {"TOKEN": "${keyring:TOKEN}"}}, "gone": {"command": "fakemcp", "env": {"TOKEN": "${keyring:NONE}"}}}}`,
		"host.json": `{"mcpServers": {"git": {"command": "git-mcp", "env": {"GIT_TOKEN": "ghp_MOVED123456789012345678901234567890"}}}}`,
		"session.sh": `set -eux
printf 'a password\n' | gnome-keyring-daemon --unlock --components=secrets --daemonize >daemon.log
! dynmcp secret rm TOKEN
printf 'a CANARY value\n' | dynmcp secret set TOKEN
test "$(dynmcp secret ls)" = TOKEN
test "$(secret-tool lookup service 'dynmcp secrets' username TOKEN)" = 'a CANARY value'
test "$(dynmcp call real/env name=TOKEN)" = 'a CANARY value'
! dynmcp call gone/env name=TOKEN 2>gone.log
grep 'dynmcp secret set NONE' gone.log
dynmcp import claude-desktop --from host.json --secrets keyring --write -c moved.json
! grep ghp_ moved.json
grep '"GIT_TOKEN": "${keyring:GIT_TOKEN}"' moved.json
test "$(secret-tool lookup service 'dynmcp secrets' username GIT_TOKEN)" = ghp_MOVED123456789012345678901234567890
dynmcp secret rm TOKEN
! dynmcp call real/env name=TOKEN
test "$(dynmcp secret ls)" = GIT_TOKEN
: all of it
`,
	} {
		writeFile(t, dir, name, text)
	}
	cmd := exec.CommandContext(t.Context(), "dbus-run-session", "--", "sh", "session.sh")
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	path := []string{filepath.Dir(mcptest.Dynmcp(t)), filepath.Dir(mcptest.Fake(t)), os.Getenv("PATH")}
	cmd.Env = append(mcptest.Environ(t), "PATH="+strings.Join(path, string(os.PathListSeparator)), "HOME="+dir, "XDG_RUNTIME_DIR="+runtime, "XDG_STATE_HOME="+dir,
		"XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir, "DYNMCP_KEYRING=", "DBUS_SESSION_BUS_ADDRESS=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "+ : all of it") {
		t.Errorf("%v\n%s", err, out)
	}
}
