package upstream

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// runner returns the entry of a package runner with the name npx that runs script. Its first
// argument is the returned folder.
func runner(t *testing.T, script string) (schema.Server, string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the runner is a shell script")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "npx")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := fake(t)
	server.Command, server.Args = path, []string{dir}
	return server, dir
}

// An npm that is ended in the middle of an install leaves a lock and no package.json, and every
// later npx of that package fails.
func TestCloseLetsAnInstallFinish(t *testing.T) {
	t.Parallel()
	server, dir := runner(t, `i=0; while [ $((i+=1)) -le 20 ]; do sleep 0.05; done; : > "$1/package.json"`)
	c, err := Open(server, ConnOptions{timing: timing{stopGrace: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := os.Stat(filepath.Join(dir, "package.json")); err != nil {
		t.Error("the install was interrupted")
	}
}

// With its first output the install is over, and the server is ended like any other.
func TestCloseAfterAnInstall(t *testing.T) {
	t.Parallel()
	server, _ := runner(t, `echo '{"jsonrpc":"2.0","method":"notifications/x"}'; exec sleep 600`)
	peer, log := &recorder{}, logBuffer{}
	c, err := Open(server, ConnOptions{Peer: peer, Logger: slog.New(slog.NewTextHandler(&log, nil)), timing: timing{stopGrace: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	peer.waitFor(t, "notifications/x", 1)
	c.Close()
	if strings.Contains(log.String(), "waiting for the install") {
		t.Errorf("the log says %s", &log)
	}
}

func TestInstallThatWasCutShort(t *testing.T) {
	t.Parallel()
	server, _ := runner(t, `cat >&2 <<-'END'
		npm error code ENOENT
		npm error syscall open
		npm error path /home/me/.npm/_npx/a705c79b42eea4c8/package.json
		npm error enoent Could not read package.json: Error: ENOENT: no such file or directory, open '/home/me/.npm/_npx/a705c79b42eea4c8/package.json'
	END
	exit 254`)
	_, err := tryDial(t, server, ConnOptions{HandshakeOnly: true})
	failure := wantFailure(t, err, transports.CodeStartFailed, transports.NotSent)
	if want := "an earlier install of this package was cut short; remove the folder /home/me/.npm/_npx/a705c79b42eea4c8 and try again"; failure.Hint != want {
		t.Errorf("got hint %q, want %q", failure.Hint, want)
	}
}

// After an interrupted install, npx waits for a lock that no process holds.
func TestInstallThatHangs(t *testing.T) {
	t.Parallel()
	server, home := runner(t, "exec cat >/dev/null") // until it is told to end
	folder := filepath.Join(home, ".npm", "_npx", "a705c79b42eea4c8")
	if err := os.MkdirAll(filepath.Join(folder, "concurrency.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	server.Env["HOME"] = home
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := openWithHandshake(ctx, server, ConnOptions{HandshakeOnly: true})
	failure := wantFailure(t, err, transports.CodeTimeout, transports.NotSent)
	if want := "npx installs into " + folder + ", or was cut short there: try again, and if that hangs too remove the folder"; failure.Hint != want {
		t.Errorf("got hint %q, want %q", failure.Hint, want)
	}
}
