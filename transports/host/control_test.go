package host

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// An error of the SDK keeps its code. Without a code it becomes an invalid request.
func TestErrorsOfTheControlPlane(t *testing.T) {
	method := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method", Data: []byte(`{"x":1.0}`)}
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"with a code", method, `{"code":-32601,"message":"no such method","data":{"x":1.0}}`},
		{"that is wrapped", fmt.Errorf("of this era: %w", method), `{"code":-32601,"message":"of this era: no such method","data":{"x":1.0}}`},
		{"without a code", &jsonrpc.Error{Message: "odd"}, `{"code":-32600,"message":"odd"}`},
		{"of Go", errors.New("odd"), `{"code":-32600,"message":"odd"}`},
	} {
		var got *wire.Error
		if !errors.As(controlError(test.err), &got) || string(got.JSON()) != test.want {
			t.Errorf("%s: got %v", test.name, controlError(test.err))
		}
	}
	if err := controlError(nil); err != nil {
		t.Errorf("of no error: %v", err)
	}
}

// A session without problems logs nothing.
func TestQuietSessionLogsNothing(t *testing.T) {
	near, far := mcptest.Pipe()
	var log bytes.Buffer
	e := testHostOn(t, near, near, far, SessionOptions{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	e.wait(3)
	far.Close()
	_ = e.end() // the host is gone
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}

// A roomEdge counts the calls of AwaitRoom.
type roomEdge struct {
	Edge
	waits atomic.Int32
}

func (e *roomEdge) AwaitRoom() {
	e.waits.Add(1)
	e.Edge.AwaitRoom()
}

// Answers of the control plane wait until the host has room. Answers of upstreams do not,
// because the readers of upstreams must not block.
func TestControlPlaneWaitsForRoom(t *testing.T) {
	e := newTestHost(t, nil)
	e.begin("2025-11-25")
	edge := &roomEdge{Edge: e.host.edge}
	e.host.edge = edge
	for n, test := range []struct {
		request string
		waits   int32
	}{
		{`"method":"tools/list"`, 1},
		{`"method":"tools/call"`, 0},
		{`"method":"resources/subscribe","params":{"uri":"x://a"}`, 0}, // it fails
	} {
		before := edge.waits.Load()
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, n, test.request))
		e.wait(n + 2)
		if got := edge.waits.Load() - before; got != test.waits {
			t.Errorf("%s: waited %d times, want %d", test.request, got, test.waits)
		}
	}
}

// Until initialize is answered, messages that may be dropped are held up to a limit.
func TestHeldMessagesAreLimited(t *testing.T) {
	for _, test := range []struct {
		class Class
		most  int // limit of the bytes held already; -1 means no limit
	}{{Expendable, maxEarly}, {Latest, maxEarly}, {Ordinary, 4 * maxEarly}, {Essential, -1}, {Response, -1}} {
		for _, waits := range []int{0, maxEarly, maxEarly + 1, 4 * maxEarly, 4*maxEarly + 1} {
			s := NewSession("h1", nil, SessionOptions{})
			s.begun, s.heldSize = true, waits
			err := s.write(nil, test.class, [][]byte{[]byte("some "), []byte("words")})
			fits := test.most < 0 || waits <= test.most
			if fits != (err == nil) || !fits && !errors.Is(err, wire.ErrFull) {
				t.Errorf("class %d while %d bytes wait: got %v", test.class, waits, err)
			}
			if held := len(s.held) == 1 && string(s.held[0].text) == "some words" && s.heldSize == waits+len("some words"); held != fits {
				t.Errorf("class %d while %d bytes wait: held are %d messages of %d bytes", test.class, waits, len(s.held), s.heldSize)
			}
			s.held, s.heldSize = nil, 0
		}
	}
}
