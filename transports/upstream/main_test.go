package upstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

func TestMain(m *testing.M) {
	if os.Getenv(serialVariable) != "" {
		serveSerially(os.Stdin, os.Stdout)
		return
	}
	wire.OverwriteLent()
	mcptest.MainParallel(m, 16) // many wait a second for a timeout
}

// patience is how long a test waits for an event that must come.
const patience = 2 * time.Minute

// fake returns the entry of a fakemcp child. It and the processes that it starts must be gone
// when the test ends.
func fake(t *testing.T, args ...string) schema.Server {
	t.Helper()
	name, value := "TRANSPORTS_MARKER", rand.Text()
	t.Cleanup(func() {
		if left := mcptest.Processes(name + "=" + value); len(left) > 0 {
			t.Errorf("processes left behind: %v", left)
		}
	})
	return schema.Server{Name: "up", Transport: schema.Stdio, Command: mcptest.Fake(t), Args: args, Env: map[string]string{name: value}}
}

// dial opens a connection that is closed when the test ends.
func dial(t *testing.T, server schema.Server, opts ConnOptions) *Conn {
	t.Helper()
	c, err := tryDial(t, server, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryDial(t *testing.T, server schema.Server, opts ConnOptions) (*Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := openWithHandshake(ctx, server, opts)
	if err == nil {
		t.Cleanup(c.Close)
	}
	return c, err
}

// openWithHandshake opens a connection and makes the handshake. Its stopGrace is short, unless the
// test sets another.
func openWithHandshake(ctx context.Context, server schema.Server, opts ConnOptions) (*Conn, error) {
	if opts.timing.stopGrace == 0 {
		opts.timing.stopGrace = 200 * time.Millisecond
	}
	c, err := Open(server, opts)
	if err != nil {
		return nil, err
	}
	if err := c.Handshake(ctx, nil); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// tool calls a tool with arguments and returns its result.
func tool(t *testing.T, c *Conn, name, arguments string) (json.RawMessage, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // without a deadline, which would replace the server's timeout
	defer cancel()
	defer time.AfterFunc(patience, cancel).Stop()
	result, err := c.Call(ctx, "tools/call", fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, arguments))
	if errors.Is(err, context.Canceled) {
		t.Fatalf("%s: no answer", name)
	}
	return result, err
}

// start starts a call and returns a channel that receives its error.
func start(c *Conn, call *Call) <-chan error {
	ended := make(chan error, 1)
	call.Done = func(_ json.RawMessage, err error) { ended <- err }
	c.Start(call)
	return ended
}

func toolCall(params string) *Call {
	return &Call{Method: "tools/call", Params: []byte(params)}
}

// endless are the params of a tool call that fakemcp does not answer.
const endless = `{"name":"sleep","arguments":{"ms":0}}`

// setTimeout sets the timeout of calls after a handshake that must not have it.
// The connection must be of the handshake era and idle.
func setTimeout(c *Conn, timeout time.Duration) { c.server.Timeout = timeout }

// mustEcho fails the test unless the upstream answers. It ignores the timeout of calls.
func mustEcho(t *testing.T, c *Conn) {
	t.Helper()
	const arguments = `{"n":9007199254740993,"f":1.0,"z":1,"a":2}`
	var result json.RawMessage
	var err error
	ended := make(chan struct{})
	c.Start(&Call{
		Method: "tools/call", Params: []byte(`{"name":"echo","arguments":` + arguments + `}`), unlimited: true,
		Done: func(r json.RawMessage, e error) {
			result, err = bytes.Clone(r), e
			close(ended)
		},
	})
	waitFor(t, "the answer to echo", ended)
	if err != nil {
		t.Fatalf("echo: %v", err)
	}
	var got bytes.Buffer // without the white space of the fault "pretty"
	if err := json.Compact(&got, wire.Get(result, "structuredContent")); err != nil || got.String() != arguments {
		t.Fatalf("echo: got %s, want %s", result, arguments)
	}
}

// wantFailure fails the test unless err is a failure with this code and outcome.
func wantFailure(t *testing.T, err error, code int64, outcome transports.Outcome) *transports.Failure {
	t.Helper()
	var f *transports.Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a failure with code %d", err, code)
	}
	if f.Code != code || f.Outcome != outcome {
		t.Errorf("got %d %s (%v), want %d %s", f.Code, f.Outcome, f, code, outcome)
	}
	return f
}

func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: never", what)
	}
}

// manyCalls makes calls at the same time and fails the test unless each gets its own answer.
func manyCalls(t *testing.T, c *Conn, calls int) {
	t.Helper()
	failed := make(chan error, calls)
	for n := range calls {
		want := fmt.Sprintf(`{"nonce":"n%d"}`, n)
		call := toolCall(`{"name":"echo","arguments":` + want + `}`)
		call.Done = func(result json.RawMessage, err error) {
			if got := string(wire.Get(result, "structuredContent")); err == nil && got != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			failed <- err
		}
		c.Start(call)
	}
	for range calls {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// A recorder is a Peer that records notifications.
type recorder struct {
	onRequest func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	mu   sync.Mutex
	got  []string // method and params
	more chan struct{}
}

func (r *recorder) Notify(method string, params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, method+" "+string(params))
	if r.more != nil {
		close(r.more)
		r.more = nil
	}
}

func (r *recorder) Request(ctx context.Context, method string, params json.RawMessage) func() (json.RawMessage, error) {
	return func() (json.RawMessage, error) { return r.onRequest(ctx, method, params) }
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.got...)
}

// wait waits for n notifications and returns all.
func (r *recorder) wait(t *testing.T, n int) []string {
	t.Helper()
	return r.waitFor(t, "", n)
}

// waitFor waits for n notifications that begin with prefix and returns all that do.
func (r *recorder) waitFor(t *testing.T, prefix string, n int) []string {
	t.Helper()
	end := time.After(patience)
	for {
		r.mu.Lock()
		var found []string
		for _, text := range r.got {
			if strings.HasPrefix(text, prefix) {
				found = append(found, text)
			}
		}
		if len(found) >= n {
			r.mu.Unlock()
			return found
		}
		if r.more == nil {
			r.more = make(chan struct{})
		}
		more := r.more
		r.mu.Unlock()
		select {
		case <-more:
		case <-end:
			t.Fatalf("got %d notifications %q, want %d: %q", len(found), prefix, n, r.all())
		}
	}
}
