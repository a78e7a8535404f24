//go:build unix

package main_test

import (
	"io"
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
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, bin, "npx", "#!/bin/sh\nexec fakemcp -name weather\n")
	if err := os.Chmod(filepath.Join(bin, "npx"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(mcptest.Dynmcp(t), "add", "io.example/weather", "--registry", r.URL)
	cmd.Dir = dir
	cmd.Env = append(mcptest.Environ(t), "HOME="+dir, "XDG_STATE_HOME="+filepath.Join(dir, "state"), "DYNMCP_KEYRING=off", "TERM=dumb",
		"PATH="+bin+string(os.PathListSeparator)+filepath.Dir(mcptest.Fake(t))+string(os.PathListSeparator)+"/usr/bin:/bin")
	master, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	screen := &screen{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		screen.readFrom(master)
	}()
	for _, step := range []struct{ wait, answer string }{
		{"1  npm  @example/weather 1.2.0", ""}, {"Which one? [1-", "1"},
		{"The key of the weather service (secret)", ""}, {"WEATHER_API_KEY: ", "s3cret-CANARY"},
		{"LEVEL [info]: ", "\n"},
		{"Units of temperatures (one of metric, imperial)", ""}, {"units [metric]: ", "kelvin"}, {"want one of metric, imperial", ""}, {"units [metric]: ", "imperial"},
		{"city [none]: ", "Graz"}, {"city [none]: ", "Bern"}, {"city [none]: ", "\n"},
		{"npx -y @example/weather@1.2.0 --units=imperial Graz Bern", ""}, {`Add it as "weather"? [y/N] `, "y"},
		{"Limit it to what every sandbox allows", "n"}, {"Start and list them now? [y/N] ", "y"}, {"PASS", ""},
	} {
		if !screen.waitFor(step.wait) {
			t.Fatalf("%q did not appear:\n%s", step.wait, screen.text())
		}
		if step.answer != "" {
			if _, err := master.WriteString(strings.TrimSuffix(step.answer, "\n") + "\n"); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	<-read
	if err != nil {
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

// A screen is what a terminal has shown.
type screen struct {
	mu    sync.Mutex
	shown strings.Builder
	seen  int // up to where waitFor has looked
	more  chan struct{}
}

// readFrom reads what the program shows until it has ended.
func (s *screen) readFrom(r io.Reader) {
	chunk := make([]byte, 4096)
	for {
		n, err := r.Read(chunk)
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
func (s *screen) waitFor(text string) bool {
	late := time.After(time.Minute) // a busy machine is slow
	for {
		s.mu.Lock()
		at := strings.Index(s.shown.String()[s.seen:], text)
		if at >= 0 {
			s.seen += at + len(text)
			s.mu.Unlock()
			return true
		}
		if s.more == nil {
			s.more = make(chan struct{})
		}
		more := s.more
		s.mu.Unlock()
		select {
		case <-more:
		case <-late:
			return false
		}
	}
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
