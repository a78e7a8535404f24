package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/transports/host"
)

// patience is how long a test waits for an event that must happen.
const patience = 2 * time.Minute

// A testGateway is a gateway on its own port. Functions of the test replace the aggregator.
type testGateway struct {
	t        *testing.T
	g        *Gateway
	url      string
	ln       *listener
	client   *http.Client
	stop     func()
	ended    chan struct{}      // closed when Serve has returned
	sessions chan *host.Session // the first sessions
	opened   atomic.Int64       // number of sessions
	closed   atomic.Int64
}

// newTestGateway serves until the test ends; handle handles the requests of the data plane.
func newTestGateway(t *testing.T, opts GatewayOptions, handle func(*host.Request), tune ...func(*Gateway)) *testGateway {
	t.Helper()
	tg := &testGateway{t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, ended: make(chan struct{}), sessions: make(chan *host.Session, 16)}
	control := mcp.NewServer(&mcp.Implementation{Name: "gateway", Version: "1"}, &mcp.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})
	if handle == nil {
		handle = func(r *host.Request) { r.Reply(json.RawMessage(`{"content":[]}`), nil) }
	}
	opts.Open = func(edge Edge, principal, namespace string, lasts bool) (*host.Session, func(context.Context)) {
		s := host.NewSession(fmt.Sprint("s", tg.opened.Add(1)), edge, host.SessionOptions{
			Control: control, HandleRequest: handle, HandleNotification: func(string, json.RawMessage) {},
		})
		select {
		case tg.sessions <- s:
		default:
		}
		return s, func(ctx context.Context) {
			s.End(ctx)
			tg.closed.Add(1)
		}
	}
	if opts.Health == nil {
		opts.Health = func(namespace string) (Health, bool) { return Health{Status: "running", PID: 7}, namespace == "git" }
	}
	if opts.AllowedHosts == nil {
		opts.AllowedHosts = []string{"localhost", "127.0.0.1", "::1"}
	}
	opts.MaxRequestBytes = max(opts.MaxRequestBytes, 1<<20)
	opts.MaxResponseBytes = max(opts.MaxResponseBytes, 1<<10)
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 1024
	}
	ln, err := Listen("127.0.0.1:0", false, false, Connections(0))
	if err != nil {
		t.Fatal(err)
	}
	tg.ln = ln.(*listener)
	tg.url = "http://" + ln.Addr().String()
	tg.g = New(opts)
	tg.g.streamAfter = patience // so that an answer on a slow machine needs no event stream
	for _, f := range tune {
		f(tg.g)
	}
	ctx, cancel := context.WithCancel(context.Background())
	tg.stop = cancel
	go func() {
		defer close(tg.ended)
		if err := tg.g.Serve(ctx, ln); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		tg.client.CloseIdleConnections()
		<-tg.ended
	})
	return tg
}

// An answer is an HTTP response that was read whole.
type answer struct {
	status int
	header http.Header
	body   string
	last   bool // the connection is closed after it
}

// do sends a request; headers are names, each followed by its value.
func (tg *testGateway) do(method, path, body string, headers ...string) answer {
	tg.t.Helper()
	resp := tg.open(method, path, body, headers...)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tg.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text), resp.Close}
}

// open sends a request; the caller reads the response.
func (tg *testGateway) open(method, path, body string, headers ...string) *http.Response {
	tg.t.Helper()
	ctx, cancel := context.WithTimeout(tg.t.Context(), patience)
	resp, err := tg.client.Do(tg.request(ctx, method, path, body, headers...))
	if err != nil {
		cancel()
		tg.t.Fatal(err)
	}
	tg.t.Cleanup(cancel)
	return resp
}

func (tg *testGateway) request(ctx context.Context, method, path, body string, headers ...string) *http.Request {
	tg.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, tg.url+path, strings.NewReader(body))
	if err != nil {
		tg.t.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// begin makes the handshake and returns the id of the session.
func (tg *testGateway) begin(path string) string {
	tg.t.Helper()
	a := tg.do("POST", path, initialize)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" || !strings.Contains(a.body, `"id":0`) || !strings.Contains(a.body, "2025-11-25") {
		tg.t.Fatalf("initialize: %+v", a)
	}
	if a := tg.do("POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id); a.status != 202 || a.body != "" {
		tg.t.Fatalf("initialized: %+v", a)
	}
	return id
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// call returns the message of a tools/call.
func call(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

// An event is an event of an event stream.
type event struct{ id, name, data string }

// An eventReader reads an event stream.
type eventReader struct {
	t *testing.T
	b *bufio.Reader
}

func newEventReader(t *testing.T, r io.Reader) *eventReader {
	return &eventReader{t, bufio.NewReader(r)}
}

// next returns the next event, false at the end of the stream. It skips comments.
func (e *eventReader) next() (ev event, ok bool) {
	e.t.Helper()
	for seen := false; ; {
		line, err := e.b.ReadString('\n')
		if err != nil {
			return ev, false
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && seen:
			return ev, true
		case line == "" || name == "":
		case name == "id":
			ev.id, seen = value, true
		case name == "event":
			ev.name, seen = value, true
		case name == "data":
			ev.data, seen = value, true
		}
	}
}

// want returns the next event, whose data must contain text.
func (e *eventReader) want(text string) event {
	e.t.Helper()
	ev, ok := e.next()
	if !ok || !strings.Contains(ev.data, text) {
		e.t.Fatalf("got event %+v (%t), want one with %s", ev, ok, text)
	}
	return ev
}

// dial sends text on a new connection, and leaves the response unread.
func (tg *testGateway) dial(text string) net.Conn {
	tg.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(tg.url, "http://"))
	if err != nil {
		tg.t.Fatal(err)
	}
	tg.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		tg.t.Fatal(err)
	}
	return conn
}

// raw sends text on a new connection and returns the response.
func (tg *testGateway) raw(text string) string {
	tg.t.Helper()
	conn := tg.dial(text)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	var got bytes.Buffer
	// Other errors show in the response.
	if _, err := io.Copy(&got, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		tg.t.Errorf("the connection stays open after %.100q and %q", text, got.String())
	}
	return got.String()
}
