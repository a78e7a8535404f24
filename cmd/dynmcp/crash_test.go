//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A run that the Go runtime ends leaves a trace without secrets, which doctor names. A run that ends
// as usual leaves nothing.
func TestCrashLeavesATrace(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-the-config-4711"
	state := t.TempDir()
	env := []string{"XDG_STATE_HOME=" + state, "HOME=" + state}
	config := mcptest.Config(t, document([]entry{fake(t, "alpha").with("env", map[string]string{"API_TOKEN": secret})}))
	run := func() *mcptest.Host {
		host := mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t), "-c", config, "--log-level", "debug"}, Env: env})
		greet(host)
		use(host, "alpha/stderr", `{"text":"the token is `+secret+`"}`)
		host.WaitStderr("the token is ")
		return host
	}
	traces := func() []string {
		files, _ := filepath.Glob(filepath.Join(state, "dynmcp", "crashes", "*"))
		if runtime.GOOS == "darwin" {
			files, _ = filepath.Glob(filepath.Join(state, "Library", "Application Support", "dynmcp", "crashes", "*"))
		}
		return files
	}
	host := run()
	host.Signal(syscall.SIGABRT)
	host.Wait()
	files := traces()
	if len(files) != 1 {
		t.Fatalf("left are %q", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(text), "dynmcp 0.", "msg=", "goroutine ", "the token is ")
	lacks(t, string(text), secret)
	contains(t, runVerb(t, append(os.Environ(), env...), 0, "doctor", "--no-start", "-c", config), "a run crashed at", "/crashes/crash-")
	end(t, run())
	if left := traces(); len(left) != 1 || !strings.Contains(left[0], "/crash-") {
		t.Errorf("left are %q", left)
	}
}
