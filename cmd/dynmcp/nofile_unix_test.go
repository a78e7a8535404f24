//go:build unix

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Every verb that reads a file of the user refuses a named pipe without a writer and an endless
// device, at once and by name.
func TestWhatIsNoFileIsRefused(t *testing.T) {
	t.Parallel()
	config := mcptest.Config(t, document([]entry{fake(t, "some")}))
	for kind, make := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		for name, verb := range map[string][]string{
			"a config":            {"-c", "FILE"},
			"an .env":             {"-c", config, "-e", "FILE"},
			"a shared config":     {"connect", "-c", "FILE"},
			"a config that is ls": {"ls", "-c", "FILE"},
			"a config of doctor":  {"doctor", "-c", "FILE"},
			"a certificate":       {"serve", "-c", config, "--http", "127.0.0.1:0", "--tls-cert", "FILE", "--tls-key", "FILE"},
			"a key of a cluster":  {"serve", "--http", "127.0.0.1:0", "--cluster", "nats://127.0.0.1:1", "--cluster-key", "FILE"},
			"a host's config":     {"import"},
		} {
			t.Run(kind+" as "+name, func(t *testing.T) {
				t.Parallel()
				home := t.TempDir()
				file := filepath.Join(home, ".cursor", "mcp.json")
				if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := make(file); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				cmd := exec.CommandContext(ctx, mcptest.Dynmcp(t))
				for _, arg := range verb {
					cmd.Args = append(cmd.Args, strings.ReplaceAll(arg, "FILE", file))
				}
				cmd.Env, cmd.Dir = append(mcptest.Environ(t), "HOME="+home), home
				out, _ := cmd.CombinedOutput()
				if ctx.Err() != nil {
					t.Fatalf("%q does not end: %.1000s", verb, out)
				}
				if !strings.Contains(string(out), file+" is not a regular file") {
					t.Errorf("%q said %.1000s", verb, out)
				}
			})
		}
	}
}
