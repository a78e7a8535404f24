//go:build unix

package main_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A reload reads the files of references again, and runs no command again; SIGHUP does.
func TestReloadAsksForSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := writeProgram(t, dir, "vault", "#!/bin/sh\necho run >> "+filepath.Join(dir, "runs")+"\nwc -l < "+filepath.Join(dir, "runs")+" | tr -d ' '\n")
	token := writeFile(t, dir, "token", "first\n")
	config := func(also string) string {
		return `{"mcp": {"a": {"command": "` + mcptest.Fake(t) + `", "env": {"RUN": "${cmd:` + script + `}", "TOKEN": "${file:` + token + `}"}}` + also + `}}`
	}
	l := &live{t: t, path: filepath.Join(dir, "mcp.json")}
	l.write(config(""), false)
	l.Host = mcptest.Start(t, mcptest.HostOptions{Args: []string{mcptest.Dynmcp(t)}, Dir: dir})
	greet(l.Host)
	is := func(run, token string) {
		t.Helper()
		for name, want := range map[string]string{"RUN": run, "TOKEN": token} {
			if got := use(l.Host, "a/env", `{"name":"`+name+`"}`).Text(); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
	is("1", "first")
	writeFile(t, dir, "token", "second\n")
	l.write(config(`, "b": {"command": "`+mcptest.Fake(t)+`", "description": "Another."}`), false)
	l.await(1)
	is("1", "second")
	l.Signal(syscall.SIGHUP)
	l.await(2)
	is("2", "second")
}
