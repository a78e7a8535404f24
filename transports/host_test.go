package transports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/mcptest"
	"dynmcp/internal/wire"
)

// An edge is a Host between a test, which plays the program that starts us,
// and functions that play the aggregator.
type edge struct {
	t      *testing.T
	host   *Host
	stream io.ReadWriteCloser // the host's end
	served chan error
	pings  int

	mu      sync.Mutex
	got     []string
	notices []string
	changed chan struct{}
}

// newEdge serves until the test ends; handle takes the data plane's requests.
func newEdge(t *testing.T, handle func(*Request)) *edge {
	t.Helper()
	near, far := mcptest.Pipe()
	return edgeOn(t, near, near, far, HostOptions{Handle: handle})
}

func edgeOn(t *testing.T, in io.Reader, out io.Writer, far io.ReadWriteCloser, opts HostOptions) *edge {
	t.Helper()
	e := &edge{t: t, stream: far, served: make(chan error, 1), changed: make(chan struct{})}
	//lint:ignore SA1019 hosts of the handshake era set the log level.
	logging := &mcp.LoggingCapabilities{}
	opts.Control = mcp.NewServer(&mcp.Implementation{Name: "edge", Version: "1"}, &mcp.ServerOptions{
		//lint:ignore SA1019 as above.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: logging},
	})
	if opts.Handle == nil {
		opts.Handle = func(r *Request) { r.Reply(json.RawMessage(`{}`), nil) }
	}
	opts.Notice = func(method string, params json.RawMessage) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.notices = append(e.notices, method+" "+string(params))
	}
	e.host = NewHost("h1", in, out, opts)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { e.served <- e.host.Serve(ctx) }()
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

func (e *edge) read() {
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

func (e *edge) say(lines ...string) {
	e.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(e.stream, line+"\n"); err != nil {
			e.t.Fatal(err)
		}
	}
}

// begin shakes hands; the answer is the first message.
func (e *edge) begin(version string) {
	e.t.Helper()
	e.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if got := e.wait(1); !strings.Contains(got[0], `"id":"init"`) || !strings.Contains(got[0], version) {
		e.t.Fatalf("got %s", got[0])
	}
}

// wait waits for n messages in all.
func (e *edge) wait(n int) []string {
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

// settled says ping and returns all that came before its answer.
func (e *edge) settled() []string {
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

// end waits until Serve returns, and for what it wrote.
func (e *edge) end() error {
	e.t.Helper()
	select {
	case err := <-e.served:
		return err
	case <-time.After(patience):
		e.t.Fatal("Serve does not return")
		return nil
	}
}

// The id of a request comes back as the same bytes, on both planes.
func TestHostKeepsIDs(t *testing.T) {
	e := newEdge(t, nil)
	e.begin("2025-11-25")
	for n, id := range []string{`1`, `-7`, `0`, `"a"`, `""`, `"1"`, `"\u00e9\n"`, `12345678901234567890123`, `"` + strings.Repeat("x", 10_000) + `"`} {
		for plane, method := range []string{"tools/call", "ping", "tools/list"} {
			e.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`)
			got := e.wait(2 + 3*n + plane)
			if !strings.HasPrefix(got[len(got)-1], `{"jsonrpc":"2.0","id":`+id+`,"result":{`) {
				t.Errorf("%s of %s: got %s", id, method, got[len(got)-1])
			}
		}
	}
}

func TestHostRefusesIDs(t *testing.T) {
	e := newEdge(t, nil)
	e.begin("2025-11-25")
	for n, id := range []string{`null`, `1.5`, `1.0`, `1e3`, `true`, `[1]`, `{}`} {
		e.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call"}`)
		if got := e.wait(n + 2)[n+1]; !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`) {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

// A second request under an id in flight is refused; the first is unharmed, and
// afterwards the id is free.
func TestHostRefusesDuplicateIDs(t *testing.T) {
	release := make(chan struct{})
	e := newEdge(t, func(r *Request) {
		go func() {
			<-release
			r.Reply(json.RawMessage(`{"ok":1}`), nil)
		}()
	})
	e.begin("2025-11-25")
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`
	e.say(call, call)
	if got := e.wait(2)[1]; !strings.Contains(got, `"id":5,"error":{"code":-32600`) {
		t.Errorf("got %s", got)
	}
	close(release)
	e.wait(3)
	e.say(call)
	if got := e.wait(4); got[2] != `{"jsonrpc":"2.0","id":5,"result":{"ok":1}}` || got[3] != got[2] {
		t.Errorf("got %q", got[2:])
	}
}

// Lines that are no message are answered, and the session goes on.
func TestHostRefusesJunk(t *testing.T) {
	e := newEdge(t, nil)
	e.begin("2025-11-25")
	for n, test := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":1,`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"foo":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"1.0","id":9,"method":"ping"}`, `{"jsonrpc":"2.0","id":9,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","id":"z","method":7}`, `{"jsonrpc":"2.0","id":"z","error":{"code":-32600,`},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{strings.Repeat("[", 20_000), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"x":"` + strings.Repeat("x", hostMaxMessage) + `"}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32600,`},
		{`{"method":"tools/call","params":{"x":"` + strings.Repeat("x", hostMaxMessage) + `"},"jsonrpc":"2.0","id":"last"}`, `{"jsonrpc":"2.0","id":"last","error":{"code":-32600,`},
	} {
		e.say(test.line, `{"jsonrpc":"2.0","id":"next","method":"ping"}`)
		got := e.wait(2*n + 3)
		if !strings.HasPrefix(got[2*n+1], test.want) || !strings.Contains(got[2*n+2], `"id":"next"`) {
			t.Errorf("%.60s: got %.200s, then %.200s", test.line, got[2*n+1], got[2*n+2])
		}
	}
}

// Two messages on a line, CR LF, a byte order mark and empty lines are fine.
func TestHostTolerates(t *testing.T) {
	e := newEdge(t, nil)
	e.say("\ufeff\r")
	e.begin("2025-11-25")
	e.say("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"} {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}\r\n\n")
	if got := e.wait(3); !strings.Contains(got[1], `"id":1,"result"`) || !strings.Contains(got[2], `"id":2,"result"`) {
		t.Errorf("got %q", got)
	}
}

// Before initialize nothing runs but ping; initialize comes once.
func TestHostHandshake(t *testing.T) {
	var handled []string
	e := newEdge(t, func(r *Request) {
		handled = append(handled, string(r.ID))
		r.Reply(json.RawMessage(`{}`), nil)
	})
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
	if got := e.wait(1)[0]; !strings.Contains(got, `"id":1,"error":{"code":-32600`) {
		t.Errorf("got %s", got)
	}
	e.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := e.wait(2)[1]; !strings.Contains(got, `"id":2,"result"`) {
		t.Errorf("got %s", got)
	}
	const initialize = `"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	e.say(`{"jsonrpc":"2.0","id":3,`+initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	e.wait(3)
	e.say(`{"jsonrpc":"2.0","id":4,` + initialize)
	if got := e.wait(4)[3]; !strings.Contains(got, `"id":4,"error":{"code":-32600`) {
		t.Errorf("got %s", got)
	}
	if len(handled) > 0 {
		t.Errorf("handled: %q", handled)
	}
}

// What is pipelined behind initialize is taken, and answered behind it.
func TestHostHoldsUntilInitialized(t *testing.T) {
	for range 20 {
		e := newEdge(t, nil)
		e.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
			`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`junk`,
			`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		got := e.wait(4)
		if !strings.Contains(got[0], `"protocolVersion"`) || !strings.Contains(strings.Join(got, ""), `"id":2,"result"`) {
			t.Fatalf("got %q", got)
		}
	}
}

// After a handshake that failed there may be another.
func TestHostHandshakeAgain(t *testing.T) {
	e := newEdge(t, nil)
	e.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":7}`)
	if got := e.wait(1)[0]; !strings.Contains(got, `"error"`) {
		t.Errorf("got %s", got)
	}
	e.got = nil
	e.begin("2025-11-25")
}

// A request that was cancelled is not answered, on either plane, and who works
// on it is told. Cancels of nothing do nothing.
func TestHostCancel(t *testing.T) {
	working := make(chan *Request, 1)
	reasons := make(chan string, 1)
	e := newEdge(t, func(r *Request) {
		if r.Method != "tools/call" {
			r.Reply(json.RawMessage(`{}`), nil)
			return
		}
		r.OnCancel(func(reason json.RawMessage) { reasons <- string(reason) })
		working <- r
	})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":"c","method":"tools/call"}`)
	r := <-working
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c","reason":"why"}}`
	e.say(cancel, cancel, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
	if got := <-reasons; got != `"why"` {
		t.Errorf("got reason %s", got)
	}
	if got := e.settled(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	r.Reply(json.RawMessage(`{"late":1}`), nil)
	r.Reply(nil, errors.New("later"))
	if !r.Ended() || r.OnCancel(func(json.RawMessage) {}) {
		t.Error("the request has not ended")
	}
	e.say(`{"jsonrpc":"2.0","id":"c","method":"x"}`) // the id is free
	if got := e.wait(3)[2]; got != `{"jsonrpc":"2.0","id":"c","result":{}}` {
		t.Errorf("got %s", got)
	}
}

// However answers and cancels race, no request is answered twice, and none is
// answered behind its cancel.
func TestHostAnswersOnce(t *testing.T) {
	const requests = 2000
	var workers sync.WaitGroup
	e := newEdge(t, func(r *Request) {
		for range 2 {
			workers.Go(func() {
				time.Sleep(rand.N(200 * time.Microsecond))
				r.Reply(json.RawMessage(`{}`), nil)
			})
		}
	})
	e.begin("2025-11-25")
	for n := range requests {
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, n))
		if n%2 == 0 {
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, n))
		}
	}
	e.settled()
	workers.Wait()
	answers := map[string]int{}
	for _, line := range e.settled()[1:] {
		m, err := wire.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		answers[string(m.ID)]++
	}
	for n := range requests {
		if got := answers[fmt.Sprint(n)]; got > 1 || got == 0 && n%2 == 1 {
			t.Errorf("request %d was answered %d times", n, got)
		}
	}
}

// The end of the input waits for the answers.
func TestHostAnswersBeforeTheEnd(t *testing.T) {
	for range 50 {
		near, far := halves()
		e := edgeOn(t, near, near, far, HostOptions{Handle: func(r *Request) {
			go func() {
				time.Sleep(rand.N(300 * time.Microsecond))
				r.Reply(json.RawMessage(`{}`), nil)
			}()
		}})
		e.begin("2025-11-25")
		for n := range 50 {
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`, n))
		}
		e.say(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`)
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Fatal(err)
		}
		if got := e.wait(52); len(got) != 52 {
			t.Fatalf("got %d messages, want 52", len(got))
		}
		far.Close()
	}
}

// What takes too long at the end is withdrawn, and answered with that. A
// subscription does not hold up the end.
func TestHostAbandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halves()
		cancelled := make(chan struct{})
		e := edgeOn(t, near, near, far, HostOptions{Handle: func(r *Request) { r.OnCancel(func(json.RawMessage) { close(cancelled) }) }})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		far.CloseWrite()
		began := time.Now()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != lastAnswers {
			t.Errorf("it took %v, want %v", took, lastAnswers)
		}
		<-cancelled
		got := e.wait(2)[1]
		if !strings.Contains(got, `"id":1,"error":{"code":5111,`) || !strings.Contains(got, `"outcome":"unknown"`) {
			t.Errorf("got %s", got)
		}
	})
}

// While an upstream starts, a host that closed its end early is not cut off.
func TestHostWaitsWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := halves()
		began := time.Now()
		e := edgeOn(t, near, near, far, HostOptions{
			Handle: func(r *Request) {
				time.AfterFunc(20*time.Second, func() { r.Reply(json.RawMessage(`{"slow":1}`), nil) })
			},
			Busy: func() bool { return time.Since(began) < time.Minute },
		})
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		far.CloseWrite()
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := e.wait(2)[1]; got != `{"jsonrpc":"2.0","id":1,"result":{"slow":1}}` {
			t.Errorf("got %s", got)
		}
	})
}

// When we are told to end, what is in flight is answered, what comes is not
// taken any more.
func TestHostEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := mcptest.Pipe()
		working := make(chan *Request, 1)
		host := NewHost("h1", near, near, HostOptions{
			Control: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil),
			Handle:  func(r *Request) { working <- r },
			Notice:  func(string, json.RawMessage) {},
		})
		e := &edge{t: t, host: host, stream: far, served: make(chan error, 1), changed: make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { e.served <- host.Serve(ctx) }()
		go e.read()
		e.begin("2025-11-25")
		e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)
		r := <-working
		cancel()
		synctest.Wait()
		e.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
		if got := e.wait(2)[1]; !strings.Contains(got, `"id":2,"error":{"code":5111,`) || !strings.Contains(got, "not_sent") {
			t.Errorf("got %s", got)
		}
		r.Reply(json.RawMessage(`{}`), nil)
		if err := e.end(); err != nil {
			t.Error(err)
		}
		if got := e.wait(3)[2]; got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Errorf("got %s", got)
		}
		far.Close()
		synctest.Wait()
	})
}

// A host that does not read is not read either, loses progress but nothing
// else, and after a minute is gone. Its stdout may know no deadlines.
func TestHostThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		var taken int
		host := NewHost("h1", in, out, HostOptions{
			Control: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil),
			Handle: func(r *Request) {
				taken++
				r.Reply(json.RawMessage(`"`+strings.Repeat("x", 1<<20)+`"`), nil)
			},
			Notice: func(string, json.RawMessage) {},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		served := make(chan error, 1)
		go func() { served <- host.Serve(t.Context()) }()
		var stops sync.WaitGroup
		stops.Go(func() {
			_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
			for n := range 100 {
				if _, err := fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":%d,"method":"tools/call"}`+"\n", n); err != nil {
					return
				}
			}
		})
		if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil { // it has begun to read
			t.Fatal(err)
		}
		began := time.Now()
		synctest.Wait()
		if taken < 16 || taken > 18 {
			t.Errorf("%d requests were taken while 16 MiB waited", taken)
		}
		for range 1000 {
			host.Notify("notifications/progress", json.RawMessage(`{}`))
		}
		host.Notify("notifications/tools/list_changed", nil)
		err := <-served
		if !errors.Is(err, wire.ErrStalled) {
			t.Errorf("got %v, want %v", err, wire.ErrStalled)
		}
		if took := time.Since(began); took != hostStall {
			t.Errorf("it took %v, want %v", took, hostStall)
		}
		if got := log.String(); strings.Count(got, "dropped") != 2 || !strings.Contains(got, "count=1000") {
			t.Errorf("got %s", got)
		}
		in.Close()
		stdin.Close()
		stdout.Close()
		stops.Wait()
	})
}

// SIGTERM with a host that does not read: the end does not wait a minute.
func TestHostThatDoesNotReadAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		stdout, out := io.Pipe()
		host := NewHost("h1", in, out, HostOptions{Control: mcp.NewServer(&mcp.Implementation{Name: "x"}, nil), Notice: func(string, json.RawMessage) {}})
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- host.Serve(ctx) }()
		_, _ = io.WriteString(stdin, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
		synctest.Wait()
		began := time.Now()
		cancel()
		if err := <-served; !errors.Is(err, wire.ErrStalled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 2*lastAnswers {
			t.Errorf("it took %v", took)
		}
		stdin.Close()
		stdout.Close()
	})
}

// A panic of a handler is that request's error; the session goes on.
func TestHostSurvivesPanics(t *testing.T) {
	near, far := mcptest.Pipe()
	e := edgeOn(t, near, near, far, HostOptions{Handle: func(r *Request) {
		if r.Method == "tools/call" {
			panic("boom")
		}
		r.Reply(json.RawMessage(`{}`), nil)
	}})
	e.begin("2025-11-25")
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":2,"method":"x"}`)
	if got := e.wait(3); !strings.Contains(got[1], `"id":1,"error":{"code":-32603`) || !strings.Contains(got[2], `"id":2,"result"`) {
		t.Errorf("got %q", got)
	}
}

// The requests of the stateless era are checked alike on both planes.
func TestHostChecksBothPlanes(t *testing.T) {
	for name, meta := range map[string]string{
		"no capabilities":   `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
		"odd capabilities":  `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":7`,
		"odd client":        `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":7`,
		"unknown version":   `"io.modelcontextprotocol/protocolVersion":"2999-01-01","io.modelcontextprotocol/clientCapabilities":{}`,
		"nothing of an era": `"x":1`,
	} {
		e := newEdge(t, nil)
		var codes []string
		for _, method := range []string{"tools/call", "tools/list"} {
			e.say(`{"jsonrpc":"2.0","id":"` + method + `","method":"` + method + `","params":{"name":"x","_meta":{` + meta + `}}}`)
			got := e.wait(len(codes) + 1)
			codes = append(codes, string(wire.Get(wire.Get([]byte(got[len(got)-1]), "error"), "code")))
		}
		if codes[0] != codes[1] || codes[0] == "" {
			t.Errorf("%s: got %q", name, codes)
		}
	}
}

// What the stateless era requires of a result is added, nothing else changes.
func TestHostModernResults(t *testing.T) {
	e := newEdge(t, func(r *Request) { r.Reply(json.RawMessage(`{"n":1.0,"contents":[]}`), nil) })
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	e.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+meta+`}}`, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{`+meta+`}}`)
	got := e.wait(2)
	if got[0] != `{"jsonrpc":"2.0","id":1,"result":{"n":1.0,"contents":[],"resultType":"complete"}}` {
		t.Errorf("got %s", got[0])
	}
	if got[1] != `{"jsonrpc":"2.0","id":2,"result":{"n":1.0,"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private"}}` {
		t.Errorf("got %s", got[1])
	}
}

// A listen request of a stateless host hangs by design; the end does not.
func TestHostListenDoesNotBlockTheEnd(t *testing.T) {
	near, far := halves()
	e := edgeOn(t, near, near, far, HostOptions{})
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	e.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`)
	e.wait(1)
	began := time.Now()
	far.CloseWrite()
	if err := e.end(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > lastAnswers {
		t.Errorf("it took %v", took)
	}
	far.Close()
}

// halves is a pipe of which one direction can be closed alone, as a process
// does with its stdin.
func halves() (near io.ReadWriter, far *half) {
	toNear, fromFar := mcptest.Pipe()
	toFar, fromNear := mcptest.Pipe()
	return struct {
			io.Reader
			io.Writer
		}{toNear, fromNear}, &half{
			Reader: toFar, Writer: fromFar,
			ends: []io.Closer{toFar, fromFar},
		}
}

type half struct {
	io.Reader
	io.Writer
	ends []io.Closer
}

func (h *half) CloseWrite() { h.ends[1].Close() }

func (h *half) Close() error {
	for _, end := range h.ends {
		end.Close()
	}
	return nil
}
