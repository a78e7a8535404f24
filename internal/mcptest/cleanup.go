package mcptest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// newMarker returns a unique environment entry.
func newMarker() string { return "MCPTEST_MARKER=" + rand.Text() }

// Environ returns the environment of a process: variables that programs need, and a home directory
// of its own, so that no file of the machine's user is read or written.
func Environ(t testing.TB) []string {
	home := t.TempDir()
	env := []string{
		"HOME=" + home, "USERPROFILE=" + home, "APPDATA=" + home, "LOCALAPPDATA=" + home,
		"npm_config_cache=" + npmCache(),
		"npm_config_update_notifier=false", "npm_config_audit=false", "npm_config_fund=false", // requests that no test needs
		"DYNMCP_KEYRING=off",
		// The race detector's runtime would sleep for a second at every exit.
		"GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE"),
	}
	for _, name := range []string{
		"PATH", "TMPDIR", "TEMP", "TMP", "LANG", "SystemRoot", "PATHEXT", "COMSPEC", "SystemDrive",
		"GOCOVERDIR", "npm_config_registry", "NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// npmCache returns the user's npm cache, so that npx does not download packages into the home of
// each test.
func npmCache() string {
	if dir := os.Getenv("npm_config_cache"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	switch {
	case err != nil:
		return filepath.Join(os.TempDir(), "npm-cache")
	case runtime.GOOS == "windows":
		return filepath.Join(home, "AppData", "Local", "npm-cache")
	}
	return filepath.Join(home, ".npm")
}

// cleanup closes stdin, waits for the process to exit by itself, and kills it if it does not.
func (p *Process) cleanup() {
	_ = p.stdin.Close()
	grace := watchdog
	if p.opts.Lingers {
		grace = 0
	}
	left := within(grace, p.exited)
	if !left {
		killGroup(p)
		<-p.exited
	}
	p.drain()
	p.judge(left)
	p.reapTree()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}

// judge fails the test after an unexpected end of the process.
func (p *Process) judge(left bool) {
	p.mu.Lock()
	asked := p.asked
	p.mu.Unlock()
	switch code := p.cmd.ProcessState.ExitCode(); {
	case strings.Contains(p.Stderr(), "WARNING: DATA RACE"):
		p.t.Errorf("the process raced\n%s", p.report())
	case p.opts.Lingers:
	case !left:
		p.t.Errorf("the process had to be killed\n%s", p.report())
	case !asked && code != 0:
		p.t.Errorf("the process left with status %d\n%s", code, p.report())
	}
}

// reapTree kills the descendants that the process left behind. The test fails if they were not
// expected.
func (p *Process) reapTree() {
	left := func() []int { return Processes(p.marker) }
	// A killed parent may leave a guard behind, which takes some seconds to exit.
	tidy := !p.opts.Orphans && !p.opts.Lingers && waitNone(watchdog, left)
	killGroup(p)
	if tidy {
		return
	}
	if !p.opts.Orphans && !p.opts.Lingers {
		p.t.Errorf("left behind: %s\n%s", describe(left()), p.report())
	}
	for _, pid := range left() {
		killPid(pid)
	}
}
