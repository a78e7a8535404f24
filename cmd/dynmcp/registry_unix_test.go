//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A person on a terminal is asked in the registry's words. A secret is neither shown nor in
// the config.
func TestAddAsks(t *testing.T) {
	t.Parallel()
	r := serveRegistry(t)
	dir := t.TempDir()
	writeFile(t, dir, "mcp.json", `{"mcp": {}}`)
	bin := filepath.Join(dir, "bin")
	writeProgram(t, bin, "npx", "#!/bin/sh\nexec fakemcp -name weather\n")
	cmd := exec.Command(mcptest.Dynmcp(t), "add", "io.example/weather", "--registry", r.URL)
	cmd.Dir = dir
	cmd.Env = append(mcptest.Environ(t), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "DYNMCP_KEYRING=off", "TERM=dumb",
		"PATH="+bin+string(os.PathListSeparator)+filepath.Dir(mcptest.Fake(t))+string(os.PathListSeparator)+"/usr/bin:/bin")
	screen := onTerminal(t, cmd)
	for _, step := range []struct{ wait, answer string }{
		{"1  npm  @example/weather 1.2.0", ""}, {"Which one? [1-", "1"},
		{"The key of the weather service (secret)", ""}, {"WEATHER_API_KEY: ", "s3cret-CANARY"},
		{"LEVEL [info]: ", "\n"},
		{"Units of temperatures (one of metric, imperial)", ""}, {"units [metric]: ", "kelvin"}, {"want one of metric, imperial", ""}, {"units [metric]: ", "imperial"},
		{"city [none]: ", "Graz"}, {"city [none]: ", "Bern"}, {"city [none]: ", "\n"},
		{"npx -y @example/weather@1.2.0 --units=imperial Graz Bern", ""}, {`Add it as "weather"? [y/N] `, "y"},
		{"Run it in a sandbox?", "n"}, {"Start it now to list them? [y/N] ", "y"}, {"PASS", ""},
	} {
		screen.waitFor(step.wait)
		if step.answer != "" {
			screen.types(strings.TrimSuffix(step.answer, "\n") + "\n")
		}
	}
	if err := screen.wait(); err != nil {
		t.Fatalf("%v\n%s", err, screen.text())
	}
	config, env := readFile(t, filepath.Join(dir, "mcp.json")), readFile(t, filepath.Join(dir, ".env"))
	if env != "WEATHER_API_KEY=s3cret-CANARY\n" {
		t.Errorf("the .env has %q", env)
	}
	for _, text := range []string{config, screen.text()} {
		if strings.Contains(text, "CANARY") {
			t.Errorf("the secret is seen in %s", text)
		}
	}
	contains(t, config, `"WEATHER_API_KEY": "${WEATHER_API_KEY}"`, `"registry": "io.example/weather@1.2.0"`, `"description": "`)
}

// A screen is what a terminal has shown of a command.
type screen struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	ended  chan struct{} // closed when nobody has the terminal any more

	mu    sync.Mutex
	shown strings.Builder
	seen  int           // how much of it waitFor has passed
	more  chan struct{} // closed when more is shown, nil while nobody waits
}

func onTerminal(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	master, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, master: master, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.read()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, or the test has failed
		<-s.ended
		master.Close()
	})
	return s
}

func (s *screen) read() {
	chunk := make([]byte, 4096)
	for {
		n, err := s.master.Read(chunk)
		s.mu.Lock()
		s.shown.Write(chunk[:n])
		if s.more != nil {
			close(s.more)
			s.more = nil
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// waitFor waits for a text after the last text that was waited for.
func (s *screen) waitFor(text string) {
	s.t.Helper()
	late := time.After(time.Minute) // a busy machine is slow
	for {
		s.mu.Lock()
		at := strings.Index(s.shown.String()[s.seen:], text)
		if at >= 0 {
			s.seen += at + len(text)
			s.mu.Unlock()
			return
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-late:
			s.t.Fatalf("%q did not appear:\n%s", text, s.text())
		}
	}
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := s.master.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// wait waits for the end of the command, and for all that it shows.
func (s *screen) wait() error {
	defer time.AfterFunc(2*time.Minute, func() { _ = s.cmd.Process.Kill() }).Stop()
	err := s.cmd.Wait()
	<-s.ended
	return err
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
