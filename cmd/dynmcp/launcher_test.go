package main_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// startWrapper starts a process in the place of a wrapper. It runs until it is killed.
func startWrapper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(mcptest.Fake(t), "-name", "wrapper")
	in, err := cmd.StdinPipe() // which stays open
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestDynmcpEndsWithItsWrappers(t *testing.T) {
	t.Parallel()
	for killed, name := range []string{"the launcher", "npx above it"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrappers := []*exec.Cmd{startWrapper(t), startWrapper(t)}
			alpha := fake(t, "alpha")
			host := mcptest.Start(t, mcptest.HostOptions{
				Args: []string{mcptest.Dynmcp(t), "-c", mcptest.Config(t, document([]entry{alpha}))},
				Env:  []string{fmt.Sprintf("DYNMCP_WRAPPERS=%d %d", wrappers[0].Process.Pid, wrappers[1].Process.Pid)},
			})
			greet(host)
			pids := tree(t, host, "alpha")
			if env := use(host, "alpha/env", `{"name":"DYNMCP_WRAPPERS"}`).Text(); runtime.GOOS == "linux" && env != "" {
				t.Errorf("a server inherits the wrappers: %q", env)
			}
			if err := wrappers[killed].Process.Kill(); err != nil {
				t.Fatal(err)
			}
			host.Wait() // its stdin is still open
			mcptest.WaitGone(t, pids...)
		})
	}
}

func TestDynmcpEndsIfItsWrapperIsGoneAlready(t *testing.T) {
	t.Parallel()
	wrapper := startWrapper(t)
	if err := wrapper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = wrapper.Wait()
	host := mcptest.Start(t, mcptest.HostOptions{
		Args: []string{mcptest.Dynmcp(t), "--", mcptest.Fake(t)},
		Env:  []string{"DYNMCP_WRAPPERS=" + strconv.Itoa(wrapper.Process.Pid)},
	})
	host.Wait() // its stdin is still open
}

// npx keeps each version in a folder of its own, so the host's config must name npx.
func TestInstallFromNpxNamesNpx(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "_npx", "0123", filepath.Base(mcptest.Dynmcp(t)))
	npx := filepath.Join(dir, "npx")
	if runtime.GOOS == "windows" {
		npx += ".exe"
	}
	if err := os.MkdirAll(filepath.Dir(program), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{program, npx} { // linked: a file just written may still be open in a child of another test
		if err := os.Link(mcptest.Dynmcp(t), path); err != nil {
			t.Skip(err)
		}
	}
	config := mcptest.Config(t, document([]entry{fake(t, "alpha")}))
	target := filepath.Join(dir, "host.json")
	cmd := exec.Command(program, "install", "cursor", "--yes", "--file", target, "-c", config)
	cmd.Env = append(mcptest.Environ(t), "PATH="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{quote(npx), `"-y"`, `"` + cli.Package + `@`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}
