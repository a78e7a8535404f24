package host

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// A counted reader counts the bytes that were read.
type counted struct {
	io.Reader
	n atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// earlyHost returns a host that has sent initialize, which is answered when answer is closed.
func earlyHost(t *testing.T, answer <-chan struct{}) (*testHost, *counted) {
	t.Helper()
	control := newControl()
	control.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				<-answer
			}
			return next(ctx, method, req)
		}
	})
	near, far := mcptest.Pipe()
	in := &counted{Reader: near}
	e := testHostOn(t, in, near, far, SessionOptions{Control: control})
	e.say(initialize("2025-11-25"))
	return e, in
}

// early are messages that a host may send before initialize is answered. Each has an answer; #
// is replaced by a number.
var early = map[string]string{
	"calls":     `{"jsonrpc":"2.0","id":#,"method":"tools/call"}`,
	"lists":     `{"jsonrpc":"2.0","id":#,"method":"tools/list"}`,
	"junk":      "junk # " + strings.Repeat("x", 1000),
	"big calls": `{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`,
}

// While initialize waits for an upstream to start, messages of the host are read up to a limit.
// Then all of them are answered.
func TestHostHasRoomBeforeInitialized(t *testing.T) {
	for name, line := range early {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer := make(chan struct{})
				e, in := earlyHost(t, answer)
				cost := len(line) + earlyCost
				messages := 4 * maxEarly / cost
				for n := range messages {
					e.say(strings.Replace(line, "#", strconv.Itoa(n), 1))
				}
				synctest.Wait()
				if taken := int(in.n.Load()) / len(line) * cost; taken < maxEarly/2 || taken > 2*maxEarly {
					t.Errorf("the messages that were read count as %d bytes, want about %d", taken, maxEarly)
				}
				close(answer)
				if got := e.wait(messages + 1); !strings.Contains(got[0], `"id":"init"`) {
					t.Errorf("got %.100s first", got[0])
				}
			})
		})
	}
}

// At the limit, the reader continues when the session ends before initialize is answered, so
// that it ends with its input.
func TestHostEndsBeforeInitialized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		e, in := earlyHost(t, answer)
		for n := range 2 * maxEarly / earlyCost {
			e.say(strings.Replace(early["junk"], "#", strconv.Itoa(n), 1))
		}
		synctest.Wait()
		before := in.n.Load()
		e.stop()
		synctest.Wait()
		if in.n.Load() == before {
			t.Error("the reader does not continue")
		}
		close(answer)
		if err := e.end(); err != nil {
			t.Error(err)
		}
	})
}
