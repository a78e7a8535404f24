package main_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
)

var updateCLI = flag.Bool("update", false, "write what was printed into testdata/cli1")

// The scripts are what a user types and what is printed then, byte for byte.
// Nothing in them is a terminal.
func TestVerbs(t *testing.T) {
	t.Parallel()
	open := mcptest.ServeFake(t, "-name", "web", "-bare", "-tools", "1", "-no", "resources,prompts")
	locked := mcptest.ServeFake(t, "-name", "locked", "-bearer", "open-sesame")
	path := strings.Join([]string{
		filepath.Dir(mcptest.Dynmcp(t)), filepath.Dir(mcptest.Fake(t)), os.Getenv("PATH"),
	}, string(filepath.ListSeparator))
	sse := mcptest.ServeFake(t, "-name", "sse", "-sse")
	nowhere := nobodyListens(t)
	nats := natstest.Start(t, "")
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "cli1"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", path)
			for name, dir := range map[string]string{"USERPROFILE": "", "APPDATA": ".config", "LOCALAPPDATA": ".local/state"} { // of Windows
				env.Setenv(name, filepath.Join(env.WorkDir, dir))
			}
			env.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each command otherwise
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("DYNMCP_KEYRING", "off")
			env.Setenv("DYNMCP", mcptest.Dynmcp(t))
			env.Setenv("FAKE_DIR", filepath.Dir(mcptest.Fake(t)))
			env.Setenv("OPEN_URL", open.URL)
			env.Setenv("LOCKED_URL", locked.URL)
			env.Setenv("SSE_URL", sse.URL)
			env.Setenv("NOWHERE_URL", nowhere)
			env.Setenv("NATS_URL", nats.URL)
			return nil
		},
		UpdateScripts: *updateCLI,
		Cmds:          map[string]func(*testscript.TestScript, bool, []string){"timeless": timeless, "countless": countless, "terminal": terminal},
	})
}

// terminal runs a command with a terminal for stdin, stdout and stderr on which the
// line after -types= was typed, if there is one, and Ctrl-D was pressed; its stdout is what the terminal shows. Testscript's ttyin
// loses output: it closes the terminal before all of it was read.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	master, tty, err := pty.Open()
	ts.Check(err)
	defer master.Close()
	if cols, ok := strings.CutPrefix(args[0], "-cols="); ok {
		n, err := strconv.ParseUint(cols, 10, 16)
		ts.Check(err)
		ts.Check(pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: uint16(n)}))
		args = args[1:]
	}
	typed := ""
	if line, ok := strings.CutPrefix(args[0], "-types="); ok {
		typed, args = line+"\n", args[1:]
	}
	_, err = master.WriteString(typed + "\x04")
	ts.Check(err)
	var screen bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&screen, master) // ends with an error when nobody has the terminal any more
	}()
	err = ts.Exec("sh", append([]string{"-c", `tty=$0; exec "$@" <$tty >$tty 2>&1`, tty.Name()}, args...)...)
	tty.Close()
	<-read
	ts.Stdout().Write(screen.Bytes())
	if neg != (err != nil) {
		ts.Fatalf("%v: %v\n%s", args, err, &screen)
	}
}

var seconds = regexp.MustCompile(`("seconds": |\()[0-9.]+( s\)\n|,\n)`)

// timeless puts stdout into the file timeless, with N in the place of seconds.
func timeless(ts *testscript.TestScript, _ bool, args []string) {
	text := seconds.ReplaceAllString(ts.ReadFile(args[0]), "${1}N${2}")
	ts.Check(os.WriteFile(ts.MkAbs("timeless"), []byte(text), 0o666))
}

// Help is golden, so that a change shows what users will read.
func TestHelpOfVerbs(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"ls", "test", "search", "outdated", "update", "warm", "diff", "approve", "call", "find", "describe", "read", "prompt", "run", "sandbox", "policy", "policy test", "log", "stats", "doctor", "tokens", "version", "serve", "connect",
		"cluster", "cluster key", "cluster push", "cluster pull"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			got, err := exec.Command(mcptest.Dynmcp(t), append(strings.Fields(verb), "--help")...).Output()
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "cli1", "help", strings.ReplaceAll(verb, " ", "-")+".hlp")
			if *updateCLI {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v; go test -update writes it", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("help of %s (-want +got):\n%s", verb, diff)
			}
		})
	}
}

// All help fits 80 columns, and shows what is to be replaced in letters that man pages
// keep.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	dynmcp := mcptest.Dynmcp(t)
	helpOf := func(verb ...string) []string {
		out, err := exec.Command(dynmcp, append(verb, "--help")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(out), "\n")
	}
	var walk func(verb ...string)
	walk = func(verb ...string) {
		below := false
		for _, line := range helpOf(verb...) {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%v: %d columns: %s", verb, n, line)
			}
			if strings.HasPrefix(line, "  dynmcp") && strings.Contains(line, "<") {
				t.Errorf("%v: %s", verb, line)
			}
			if line == "Available Commands:" || line == "" {
				below = line != ""
			} else if below {
				walk(append(slices.Clone(verb), strings.Fields(line)[0])...)
			}
		}
	}
	walk()
}

var throughDynmcp = regexp.MustCompile(`(saves |it adds |"dynmcp": |\()[0-9,.]*[0-9]( of | at |%\)|,?\n)`)

// countless puts stdout into the file countless, with N in the place of what is read
// through dynmcp: that changes with every word of its tools.
func countless(ts *testscript.TestScript, _ bool, args []string) {
	text := throughDynmcp.ReplaceAllString(ts.ReadFile(args[0]), "${1}N${2}")
	ts.Check(os.WriteFile(ts.MkAbs("countless"), []byte(text), 0o666))
}
