package upstream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/transports"
)

// pong is the answer of a fake to the first request after the handshake.
const pong = `{"jsonrpc":"2.0","id":2,"result":{}}`

// If a child stops in the middle of an answer, at any byte, the call fails with the outcome
// unknown: at once if the child exits, at its timeout if the child stays silent. An answer that
// lacks only the end of its line is complete.
func TestStdioCutAnywhere(t *testing.T) {
	t.Parallel()
	for cut := range len(pong) + 1 {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", fmt.Sprintf("partial:%d", cut), "-fault-on", "ping"), ConnOptions{HandshakeOnly: true})
			result, err := c.Call(t.Context(), "ping", nil)
			if cut == len(pong) {
				if err != nil || string(result) != "{}" {
					t.Errorf("the complete answer: got %s, %v", result, err)
				}
				return
			}
			if f := wantFailure(t, err, transports.CodeExited, transports.Unknown); !strings.Contains(f.Error(), "exited with status 3") {
				t.Errorf("got %v", f)
			}
		})
		if cut%9 != 0 || cut == len(pong) {
			continue
		}
		t.Run(fmt.Sprint(cut, " and silence"), func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", fmt.Sprintf("partial-hang:%d", cut), "-fault-on", "ping"), ConnOptions{HandshakeOnly: true, timing: timing{ping: 100 * time.Millisecond}})
			setTimeout(c, 100*time.Millisecond)
			_, err := c.Call(t.Context(), "ping", nil)
			wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
			mcptest.Eventually(t, "the silent child is lost", func() bool {
				// On a slow machine the beginning of the answer may come after the timeout, and
				// pass the health check. The next call that times out leads to another check.
				_, _ = c.Call(t.Context(), "ping", nil)
				return c.Err() != nil
			})
			waitFor(t, "the end", c.Done())
		})
	}
}

// Close ends a child in the middle of any activity.
func TestStdioCloseInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		"hang-call", "late", "partial-hang", "flood:100000000", "flood-lc:100000000", "junk:100000000", "stderr-flood:100000000000",
		"huge:1000000000", "close-stdout", "close-stdin", "no-read-after-init", "hang-call,ignore-eof,ignore-term", "hang-call,double-fork",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			ledger := mcptest.NewLedger(t)
			c := dial(t, fake(t, "-fault", fault, "-ledger", ledger.Path), ConnOptions{HandshakeOnly: true})
			ended := make(chan error, 2)
			for range cap(ended) {
				go func() {
					_, err := c.Call(t.Context(), "tools/call", []byte(`{"name":"echo","arguments":{"text":"`+strings.Repeat("x", 1<<20)+`"}}`))
					ended <- err
				}()
			}
			if fault != "no-read-after-init" {
				ledger.WaitFor("call echo", 1)
			}
			c.Close()
			for range cap(ended) {
				<-ended // with an answer or an error
			}
		})
	}
}
