package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A testHost is a session on a stdio edge, with the host's end of its streams and the messages
// that the host received. Functions of the options replace the aggregator.
type testHost struct {
	t      *testing.T
	host   *Session           // the tested session
	stream io.ReadWriteCloser // the host's end
	served chan error
	stop   func() // ends Serve from our side
	pings  int

	mu      sync.Mutex
	got     []string
	notices []string
	changed chan struct{}
}

// testMaxMessage is the limit of a message in tests, because stdioMaxMessage takes long to fill.
const testMaxMessage = 2 << 20

// newTestHost serves until the test ends; handle handles the requests of the data plane.
func newTestHost(t *testing.T, handle func(*Request)) *testHost {
	t.Helper()
	near, far := mcptest.Pipe()
	return testHostOn(t, near, near, far, SessionOptions{HandleRequest: handle})
}

func testHostOn(t *testing.T, in io.Reader, out io.Writer, far io.ReadWriteCloser, opts SessionOptions) *testHost {
	t.Helper()
	e := &testHost{t: t, stream: far, served: make(chan error, 1), changed: make(chan struct{})}
	if opts.Control == nil {
		opts.Control = newControl()
	}
	if opts.HandleRequest == nil {
		opts.HandleRequest = func(r *Request) { r.Reply(json.RawMessage(`{}`), nil) }
	}
	opts.HandleNotification = func(method string, params json.RawMessage) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notices = append(e.notices, method+" "+string(params))
	}
	stdio := newStdio(in, out, &wire.Cork{}, testMaxMessage)
	e.host = NewSession("h1", stdio, opts)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	e.stop = cancel
	go func() { e.served <- stdio.Serve(ctx, e.host) }()
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		e.read()
	}()
	t.Cleanup(func() {
		cancel()
		far.Close()
		<-reading
	})
	return e
}

// A pipedHost is a session on a stdio edge whose output is read by the test itself.
type pipedHost struct {
	*Session
	edge   *Stdio
	stdin  *io.PipeWriter
	stdout *io.PipeReader
	served chan error
}

// newPipedHost serves until ctx ends or the test has ended.
func newPipedHost(ctx context.Context, t *testing.T, opts SessionOptions) *pipedHost {
	in, stdin := io.Pipe()
	stdout, out := io.Pipe()
	opts.Control, opts.HandleNotification = newControl(), func(string, json.RawMessage) {}
	edge := NewStdio(in, out, nil)
	h := &pipedHost{NewSession("h1", edge, opts), edge, stdin, stdout, make(chan error, 1)}
	go func() { h.served <- edge.Serve(ctx, h.Session) }()
	t.Cleanup(func() {
		for _, end := range []io.Closer{in, stdin, stdout, out} {
			end.Close()
		}
	})
	return h
}

func newControl() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "edge", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
}

func (e *testHost) read() {
	for r := wire.NewReader(e.stream, 64<<20); ; {
		m, err := r.Next()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.got = append(e.got, string(m.Raw))
		close(e.changed)
		e.changed = make(chan struct{})
		e.mu.Unlock()
	}
}

func (e *testHost) say(lines ...string) {
	e.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(e.stream, line+"\n"); err != nil {
			e.t.Fatal(err)
		}
	}
}

// initialize returns an initialize request with the id "init".
func initialize(version string) string {
	return `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
}

// begin makes the handshake; the answer is the first message.
func (e *testHost) begin(version string) {
	e.t.Helper()
	e.say(initialize(version), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := e.wait(1); !strings.Contains(got[0], `"id":"init"`) || !strings.Contains(got[0], version) {
		e.t.Fatalf("got %s", got[0])
	}
}

// wait waits until n messages have come in all.
func (e *testHost) wait(n int) []string {
	e.t.Helper()
	end := time.After(patience)
	for {
		e.mu.Lock()
		got, changed := append([]string(nil), e.got...), e.changed
		e.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-changed:
		case <-end:
			e.t.Fatalf("got %d messages, want %d: %q", len(got), n, got)
		}
	}
}

// settled sends a ping and returns all messages before its answer.
func (e *testHost) settled() []string {
	e.t.Helper()
	e.pings++
	id := fmt.Sprintf(`"id":"settled-%d"`, e.pings)
	e.say(`{"jsonrpc":"2.0",` + id + `,"method":"ping"}`)
	for n := 1; ; n++ {
		if got := e.wait(n); strings.Contains(got[n-1], id) {
			return got[:n-1]
		}
	}
}

// end waits until Serve returns, and returns its error.
func (e *testHost) end() error {
	e.t.Helper()
	select {
	case err := <-e.served:
		return err
	case <-time.After(patience):
		e.t.Fatal("Serve does not return")
		return nil
	}
}

// halfClosePipe returns a pipe whose far end can close one direction only, like a process that
// closes its stdin.
func halfClosePipe() (near io.ReadWriter, far *pipeEnd) {
	toNear, fromFar := mcptest.Pipe()
	toFar, fromNear := mcptest.Pipe()
	return struct {
			io.Reader
			io.Writer
		}{toNear, fromNear}, &pipeEnd{
			Reader: toFar, Writer: fromFar,
			ends: []io.Closer{toFar, fromFar},
		}
}

type pipeEnd struct {
	io.Reader
	io.Writer
	ends []io.Closer
}

func (h *pipeEnd) CloseWrite() { h.ends[1].Close() }

func (h *pipeEnd) Close() error {
	for _, end := range h.ends {
		end.Close()
	}
	return nil
}
