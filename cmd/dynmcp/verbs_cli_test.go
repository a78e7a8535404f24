package main_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/mcptest/natstest"
)

var updateCLI = flag.Bool("update", false, "write what was printed into testdata/cli1")

// The scripts are what a user types and what is then printed, byte for byte, without a
// terminal.
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

// terminal runs a command on a terminal, on which the line after -types= and Ctrl-D are
// typed. Its stdout is what the terminal shows. -cols= is the width of the terminal.
// Testscript's ttyin loses output: it closes the terminal before all of it was read.
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

// timeless copies stdout into the file timeless, with N for seconds.
func timeless(ts *testscript.TestScript, _ bool, args []string) {
	text := seconds.ReplaceAllString(ts.ReadFile(args[0]), "${1}N${2}")
	ts.Check(os.WriteFile(ts.MkAbs("timeless"), []byte(text), 0o666))
}

var throughDynmcp = regexp.MustCompile(`(saves |it adds |"dynmcp": |\()[0-9,.]*[0-9]( of | at |%\)|,?\n)`)

// countless copies stdout into the file countless, with N for what is read through dynmcp,
// which changes with every word of its tools.
func countless(ts *testscript.TestScript, _ bool, args []string) {
	text := throughDynmcp.ReplaceAllString(ts.ReadFile(args[0]), "${1}N${2}")
	ts.Check(os.WriteFile(ts.MkAbs("countless"), []byte(text), 0o666))
}
