package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// The end of an upstream fails the calls in flight, with the last lines of its stderr.
func TestStdioCrash(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fault, says string }{
		{"crash-call", "panic: as asked"},
		{"partial", ""},
		{"partial:0", ""},
		{"partial:1", ""},
		{"partial:40", ""},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", test.fault, "-fault-tool", "pid"), ConnOptions{})
			other := start(c, toolCall(endless))
			_, err := tool(t, c, "pid", "{}")
			f := wantFailure(t, err, transports.CodeExited, transports.Unknown)
			if !strings.Contains(f.Stderr, test.says) || !strings.Contains(f.Error(), "exited with status 3") {
				t.Errorf("got %v, stderr %q", f, f.Stderr)
			}
			wantFailure(t, <-other, transports.CodeExited, transports.Unknown)
			waitFor(t, "the end", c.Done())
			_, err = tool(t, c, "pid", "{}")
			wantFailure(t, err, transports.CodeExited, transports.NotSent)
		})
	}
}

// An answer counts even if the child ends right after it.
func TestStdioAnswerThenExit(t *testing.T) {
	t.Parallel()
	for range 5 {
		c := dial(t, fake(t, "-fault", "crash-after", "-fault-tool", "echo"), ConnOptions{})
		mustEcho(t, c)
		waitFor(t, "the end", c.Done())
	}
}

// awaitSilence waits until the pipes of an ended child are silent. The time in which output is
// handled does not count as silence.
func TestOutputOfAnEndedChildIsAwaited(t *testing.T) {
	for name, test := range map[string]struct{ busy, silent time.Duration }{
		"silent at once":        {0, 0},
		"more comes":            {0, quiet / 2},
		"slow to handle":        {10 * time.Second, 0},
		"slow, then more comes": {10 * time.Second, quiet / 2},
		"more comes at the end": {0, quiet - quiet/10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p timedPipe
				p.waitingSince.Store(time.Now().Add(-time.Hour).UnixNano()) // before the end
				began := time.Now()
				time.AfterFunc(quiet/2, func() {
					p.waitingSince.Store(0)
					time.Sleep(test.busy)
					p.waitingSince.Store(time.Now().UnixNano())
					time.Sleep(test.silent)
					p.waitingSince.Store(time.Now().UnixNano())
				})
				p.awaitSilence(nil)
				last := quiet/2 + test.busy + test.silent
				if took := time.Since(began); took < last+quiet || took > last+quiet+quiet/5*2 {
					t.Errorf("it took %v, want %v", took, last+quiet)
				}
			})
		})
	}
}

// A large answer takes longer to read than the child takes to end.
func TestStdioBigAnswerThenExit(t *testing.T) {
	t.Parallel()
	for range 2 {
		c := dial(t, fake(t, "-fault", "crash-after", "-fault-tool", "big"), ConnOptions{})
		if result, err := tool(t, c, "big", `{"bytes":15000000}`); err != nil || len(result) < 15_000_000 {
			t.Fatalf("got %d bytes, %v", len(result), err)
		}
	}
}

// The timeout of a call leads to a health check, which ends a child that has stopped reading.
func TestStdioStopsReading(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "no-read-after-init", "-max-life", "1m"), ConnOptions{HandshakeOnly: true, timing: timing{ping: 100 * time.Millisecond}})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "echo", `{"text":"`+strings.Repeat("x", 4<<20)+`"}`)
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	waitFor(t, "the end", c.Done())
	if !errors.Is(c.Err(), errSilent) {
		t.Errorf("got %v, want %v", c.Err(), errSilent)
	}
}

// A child that reads nothing while it works on a call gets all queued messages afterwards.
func TestStdioBusy(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	c, err := Open(serialServer(t), ConnOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	first := start(c, &Call{Method: "work", Params: fmt.Appendf(nil, `{"gate":%q}`, gate)})
	second := start(c, &Call{Method: "work", Params: []byte(`{"text":"` + strings.Repeat("x", 200<<10) + `"}`)}) // more than a pipe holds
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

// serialServer returns the entry of a server that reads nothing while it works on a request. The
// program is this test binary, see TestMain.
func serialServer(t *testing.T) schema.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return schema.Server{Name: "up", Transport: schema.Stdio, Command: self, Env: map[string]string{serialVariable: "1"}}
}

const serialVariable = "UPSTREAM_TEST_SERIAL"

// serveSerially answers requests one by one. If the params have a "gate", it waits until the file
// of that name exists.
func serveSerially(in io.Reader, out io.Writer) {
	for r := wire.NewReader(in, 1<<20); ; {
		m, err := r.Next()
		if err != nil {
			return
		}
		if gate, ok := wire.Text(wire.Get(m.Params, "gate")); ok {
			for _, err := os.Stat(gate); err != nil; _, err = os.Stat(gate) {
				time.Sleep(time.Millisecond)
			}
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
	}
}

func TestStdioClosesItsStdout(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "close-stdout", "-fault-tool", "pid"), ConnOptions{})
	_, err := tool(t, c, "pid", "{}")
	f := wantFailure(t, err, transports.CodeExited, transports.Unknown)
	if !strings.Contains(f.Error(), "closed its stdout") {
		t.Errorf("got %v", f)
	}
}

func TestStdioClosesItsStdin(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "close-stdin"), ConnOptions{})
	mustEcho(t, c) // the last request that it reads
	setTimeout(c, 3*time.Second)
	for {
		_, err := tool(t, c, "echo", `{}`)
		// A request that is written just before the pipe is closed gets no answer.
		if f := (*transports.Failure)(nil); errors.As(err, &f) && f.Code == transports.CodeTimeout {
			continue
		}
		wantFailure(t, err, transports.CodeExited, transports.Unknown)
		return
	}
}

// Close ends a child and the processes that it started, even if they ignore signals.
func TestStdioClose(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		faults string
		spawn  string // a mode of the tool spawn
	}{
		{"", ""},
		{"ignore-eof", ""},
		{"ignore-eof,ignore-term", ""},
		{"", "plain"},
		{"", "ignore-term"},
		{"ignore-eof,ignore-term", "ignore-term"},
	} {
		t.Run(test.faults+" "+test.spawn, func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", test.faults), ConnOptions{})
			var child int
			if test.spawn != "" {
				result, err := tool(t, c, "spawn", fmt.Sprintf(`{"mode":%q}`, test.spawn))
				if err != nil {
					t.Fatal(err)
				}
				child = textNumber(t, result)
			}
			c.Close()
			if child != 0 && mcptest.Alive(child) {
				t.Errorf("the grandchild %d is alive", child)
			}
		})
	}
}

// textNumber returns the number in the text of a tool's result.
func textNumber(t *testing.T, result json.RawMessage) int {
	t.Helper()
	n, err := strconv.Atoi(mcptest.Message{Result: result}.Text())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Close also ends processes that have left the group and session, or lost their parent.
func TestStdioCloseEndsTree(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %t", crash), func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", "double-fork"), ConnOptions{}) // fake checks that no process is left
			if _, err := tool(t, c, "spawn", `{"mode":"fork","setsid":true}`); err != nil {
				t.Fatal(err)
			}
			if crash {
				_, err := tool(t, c, "crash", "{}")
				wantFailure(t, err, transports.CodeExited, transports.Unknown)
			}
			c.Close()
		})
	}
}

// The connection ends with the child, even if a grandchild holds its pipes open.
func TestStdioGrandchildHoldsPipes(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t), ConnOptions{})
	if _, err := tool(t, c, "spawn", `{"mode":"ignore-term"}`); err != nil {
		t.Fatal(err)
	}
	_, err := tool(t, c, "crash", "{}")
	wantFailure(t, err, transports.CodeExited, transports.Unknown)
}

func TestStdioCloseEndsCalls(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t), ConnOptions{})
	failed := start(c, toolCall(endless))
	c.Close()
	f := wantFailure(t, <-failed, transports.CodeShuttingDown, transports.Unknown)
	if !errors.Is(f, errClosed) {
		t.Errorf("got %v, want %v", f, errClosed)
	}
	if err := c.Notify("notifications/x", nil); err == nil {
		t.Error("Notify after Close: no error")
	}
	c.Close()
}

func TestStdioStderrTail(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "stderr-spam:1000000"), ConnOptions{})
	if _, err := tool(t, c, "stderr", `{"text":"the \u001b[31mlast\u0007 words"}`); err != nil {
		t.Fatal(err)
	}
	_, err := tool(t, c, "crash", "{}")
	f := wantFailure(t, err, transports.CodeExited, transports.Unknown)
	if !strings.HasSuffix(f.Stderr, `the \u{1b}[31mlast\u{7} words`) || len(f.Stderr) > 2<<10 {
		t.Errorf("got %d bytes: %q", len(f.Stderr), f.Stderr)
	}
}
