package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A server may print other text and malformed lines besides its messages.
func TestStdioIgnoresOtherOutput(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{
		"banner", "banner:200", "bom", "crlf", "blank", "pretty", "banner,bom", "pretty,crlf", "stderr-on-discover", "stderr-spam:4194304", "stderr-nonewline",
		"garbage-mid", "glued", "dribble", "batch", "twice", "unknown-id", "string-id", "invalid-utf8",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c := dial(t, fake(t, "-fault", fault, "-fault-tool", "pid"), ConnOptions{})
			if _, err := tool(t, c, "pid", "{}"); err != nil {
				t.Errorf("the call: %v", err)
			}
			mustEcho(t, c)
		})
	}
}

// A broken answer fails its call and no other.
func TestStdioBrokenAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   string
		code    int64
		outcome transports.Outcome
	}{
		{"noresult", transports.CodeProtocol, transports.Executed},
		{"deep", transports.CodeProtocol, transports.Executed},
		{"huge:3000000", transports.CodeTooLarge, transports.Executed},
		{"huge:30000000", transports.CodeTooLarge, transports.Executed},
		{"hang-call", transports.CodeTimeout, transports.Unknown},
		{"null-id", transports.CodeTimeout, transports.Unknown},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			server := fake(t, "-fault", test.fault, "-fault-tool", "pid")
			server.MaxMessageBytes = 2 << 20
			c := dial(t, server, ConnOptions{})
			if test.code == transports.CodeTimeout {
				setTimeout(c, 300*time.Millisecond)
			}
			_, err := tool(t, c, "pid", "{}")
			wantFailure(t, err, test.code, test.outcome)
			mustEcho(t, c)
		})
	}
}

func TestStdioErrorWinsOverResult(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "both", "-fault-tool", "pid"), ConnOptions{})
	_, err := tool(t, c, "pid", "{}")
	if rpc, ok := errors.AsType[*wire.Error](err); !ok || rpc.Code != -32042 {
		t.Errorf("got %v, want the error", err)
	}
	mustEcho(t, c)
}

func TestStdioPassesErrors(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t), ConnOptions{})
	const sent = `{"code":-32042,"message":"no","data":{"n":9007199254740993}}`
	_, err := tool(t, c, "fail", sent)
	var rpc *wire.Error
	if !errors.As(err, &rpc) {
		t.Fatalf("got %v, want an upstream's error", err)
	}
	if got := rpc.JSON(); !strings.Contains(string(got), "9007199254740993") || rpc.Code != -32042 || rpc.Message != "no" {
		t.Errorf("got %s", got)
	}
}

// A cancelled call is cancelled at the upstream too, whose late answer is dropped.
func TestStdioCancel(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	c := dial(t, fake(t, "-ledger", ledger.Path, "-fault", "late", "-fault-tool", "pid"), ConnOptions{HandshakeOnly: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ledger.WaitFor("call pid", 1)
		cancel()
	}()
	if _, err := c.Call(ctx, "tools/call", []byte(`{"name":"pid"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	ledger.WaitFor("cancelled 2", 1) // initialize was 1
	mustEcho(t, c)
}

func TestStdioTimeoutTellsUpstream(t *testing.T) {
	t.Parallel()
	ledger := mcptest.NewLedger(t)
	c := dial(t, fake(t, "-ledger", ledger.Path), ConnOptions{HandshakeOnly: true})
	setTimeout(c, 100*time.Millisecond)
	_, err := tool(t, c, "sleep", `{"ms":0}`)
	wantFailure(t, err, transports.CodeTimeout, transports.Unknown)
	ledger.WaitFor("cancelled 2", 1)
	mustEcho(t, c)
}

// Progress reaches the call under the host's token, before the result.
func TestStdioProgress(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "late-progress"), ConnOptions{})
	for _, token := range []string{`"a-token"`, `7`, `"1"`} {
		peer := &recorder{}
		done := make(chan error, 1)
		var before int
		c.Start(&Call{
			Method: "tools/call",
			Params: fmt.Appendf(nil, `{"name":"progress","_meta":{"x":1.0,"progressToken":%s,"y":2},"arguments":{"steps":3}}`, token),
			Peer:   peer,
			Done: func(_ json.RawMessage, err error) {
				before = len(peer.all())
				done <- err
			},
		})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if before != 3 {
			t.Errorf("got %d progress notifications before the result, want 3", before)
		}
		mustEcho(t, c)
		got := peer.all()
		if len(got) != 3 {
			t.Fatalf("got %d progress notifications, want 3: %q", len(got), got)
		}
		for _, text := range got {
			if !strings.HasPrefix(text, "notifications/progress ") || !strings.HasSuffix(text, `.0,"progressToken":`+token+"}") {
				t.Errorf("got %s, want the token %s", text, token)
			}
		}
	}
}

// Requests and notifications of the upstream reach the peer. Its answers are sent back unchanged.
func TestStdioUpstreamAsks(t *testing.T) {
	t.Parallel()
	peer := &recorder{onRequest: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if method == "roots/list" {
			return json.RawMessage(`{"roots":[],"n":1.0}`), nil
		}
		return nil, wire.ParseError(json.RawMessage(`{"code":-1,"message":"no","data":1.0}`))
	}}
	c := dial(t, fake(t), ConnOptions{Peer: peer})
	result, err := tool(t, c, "ask", `{"method":"roots/list"}`)
	if got := wire.Get(wire.Get(result, "structuredContent"), "result"); err != nil || string(got) != `{"roots":[],"n":1.0}` {
		t.Errorf("got %s, %v", result, err)
	}
	result, err = tool(t, c, "ask", `{"method":"sampling/createMessage","params":{"x":1.0}}`)
	if got := wire.Get(wire.Get(result, "structuredContent"), "error"); err != nil || string(got) != `{"code":-1,"message":"no","data":1.0}` {
		t.Errorf("got %s, %v", result, err)
	}
	result, err = tool(t, c, "ask", `{"method":"ping"}`)
	if got := wire.Get(wire.Get(result, "structuredContent"), "result"); err != nil || string(got) != `{}` {
		t.Errorf("ping: got %s, %v", result, err)
	}
	if _, err = tool(t, c, "notify", `{"method":"notifications/x","params":{"f":1.0}}`); err != nil {
		t.Fatal(err)
	}
	if got := peer.wait(t, 1); got[0] != `notifications/x {"f":1.0}` {
		t.Errorf("got %q", got)
	}
}

func TestStdioUpstreamCancelsItsRequest(t *testing.T) {
	t.Parallel()
	asked, cancelled := make(chan struct{}), make(chan struct{})
	peer := &recorder{onRequest: func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(asked)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	}}
	c := dial(t, fake(t), ConnOptions{Peer: peer})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := c.Call(ctx, "tools/call", []byte(`{"name":"ask","arguments":{"method":"roots/list"}}`))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitFor(t, "the cancellation", cancelled)
}

// All notifications of a flood arrive before the answer that follows it.
func TestStdioFlood(t *testing.T) {
	t.Parallel()
	peer := &recorder{}
	c := dial(t, fake(t, "-fault", "flood:20000", "-fault-tool", "pid"), ConnOptions{Peer: peer})
	if _, err := tool(t, c, "pid", "{}"); err != nil {
		t.Fatal(err)
	}
	if got := len(peer.all()); got != 20_000 {
		t.Errorf("%d notifications before the answer, want 20000", got)
	}
}

func TestStdioQueueIsFull(t *testing.T) {
	t.Parallel()
	c := dial(t, fake(t, "-fault", "no-read-after-init"), ConnOptions{HandshakeOnly: true})
	params := json.RawMessage(`{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 8<<20) + `"}}`)
	const calls = maxQueued/(8<<20) + 3
	failed := make(chan error, calls)
	for range calls {
		c.Start(&Call{Method: "tools/call", Params: params, Done: func(_ json.RawMessage, err error) { failed <- err }})
	}
	f := wantFailure(t, <-failed, transports.CodeOverloaded, transports.NotSent)
	if text := f.Text(); !errors.Is(f, wire.ErrFull) || !strings.Contains(text, "127 MB wait for it") || !strings.Contains(text, "call again when it has caught up") {
		t.Errorf("got %s", text)
	}
}

func TestStdioRequestTooLarge(t *testing.T) {
	t.Parallel()
	server := fake(t)
	server.MaxMessageBytes = 1 << 20
	c := dial(t, server, ConnOptions{})
	_, err := tool(t, c, "echo", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`)
	wantFailure(t, err, transports.CodeTooLarge, transports.NotSent)
	mustEcho(t, c)
}

func TestStdioLists(t *testing.T) {
	t.Parallel()
	list := func(t *testing.T, fault string) ([]json.RawMessage, error) {
		c := dial(t, fake(t, "-tools", "25", "-bare", "-page", "10", "-fault", fault), ConnOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return c.List(ctx, "tools/list", "tools", nil)
	}
	if tools, err := list(t, ""); err != nil || len(tools) != 25 {
		t.Errorf("got %d tools, %v", len(tools), err)
	}
	if tools, err := list(t, "cursor-empty"); err != nil || len(tools) != 10 {
		t.Errorf("cursor-empty: got %d tools, %v", len(tools), err)
	}
	for _, fault := range []string{"cursor-loop", "cursor-endless", "list-null"} {
		_, err := list(t, fault)
		wantFailure(t, err, transports.CodeProtocol, transports.Executed)
	}
	var rpc *wire.Error
	if _, err := list(t, "fail-list"); !errors.As(err, &rpc) || rpc.Code != wire.CodeInternal {
		t.Errorf("fail-list: got %v", err)
	}
}

func TestStdioManyCalls(t *testing.T) {
	t.Parallel()
	manyCalls(t, dial(t, fake(t), ConnOptions{}), 2000)
}
