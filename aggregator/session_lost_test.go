package aggregator

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A forgetful server forgets its first session while calls of it are in flight.
// Those are answered after goOn is closed. Later calls get a 404; if busy is set, one
// gets a 429.
type forgetful struct {
	goOn chan struct{}

	mu        sync.Mutex
	sessions  int
	forgotten bool
	busy      bool
	ran       map[string]int // by nonce
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	serveEcho(w, r, f.open, f.call)
}

func (f *forgetful) open() (session string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions++
	return fmt.Sprint("s", f.sessions)
}

func (f *forgetful) call(nonce, session string) (status int, text string) {
	first := session == "s1"
	f.mu.Lock()
	refused, busy := first && f.forgotten, f.busy && nonce == "20"
	if !refused {
		f.ran[nonce]++
	}
	f.mu.Unlock()
	switch {
	case refused && busy:
		return http.StatusTooManyRequests, ""
	case refused:
		return http.StatusNotFound, ""
	case first:
		<-f.goOn
	}
	return http.StatusOK, ""
}

// serveEcho is a server of the handshake era with one tool. open returns the name of
// a new session. call runs a call by its nonce, or returns the status and text of its
// refusal.
func serveEcho(w http.ResponseWriter, r *http.Request, open func() string, call func(nonce, session string) (status int, text string)) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body)
	result := `{}`
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", open())
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}`
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}`
	case m.Method == "tools/call":
		nonce, _ := wire.Text(wire.Get(m.Params, "arguments", "nonce"))
		if status, text := call(nonce, r.Header.Get("Mcp-Session-Id")); status != http.StatusOK {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
			return
		}
		result = `{"content":[{"type":"text","text":"ran"}]}`
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// forget forgets the first session when running calls are in flight.
func (f *forgetful) forget(t *testing.T, running int) {
	t.Helper()
	mcptest.Eventually(t, fmt.Sprintf("%d calls run", running), func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.forgotten = len(f.ran) == running
		return f.forgotten
	})
}

// talkTo returns a host of an aggregator with one HTTP server: send writes to the
// aggregator, answers has its answers.
func talkTo(t *testing.T, server http.Handler) (send func(format string, args ...any), answers <-chan wire.Message) {
	t.Helper()
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	cfg := configOf(t, `{"mcp":{"up":{"url":"`+web.URL+`"}}}`)
	agg, err := New(cfg, Options{Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	got := make(chan wire.Message, 100)
	var running sync.WaitGroup
	running.Go(func() {
		_ = agg.Serve(t.Context(), ours, ours)
		ours.Close()
	})
	running.Go(func() {
		for lines := bufio.NewScanner(theirs); lines.Scan(); {
			if m, _ := wire.Parse([]byte(strings.Clone(lines.Text()))); m.ID != nil {
				got <- m
			}
		}
	})
	t.Cleanup(func() {
		theirs.Close()
		agg.Close()
		running.Wait()
	})
	send = func(format string, args ...any) { fmt.Fprintf(theirs, format+"\n", args...) }
	send(`{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"host","version":"1"}}}`)
	next(t, got)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return send, got
}

func next(t *testing.T, answers <-chan wire.Message) wire.Message {
	t.Helper()
	select {
	case m := <-answers:
		return m
	case <-time.After(30 * time.Second):
		t.Fatal("no answer")
	}
	return wire.Message{}
}

const useEcho = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"up/echo","tool_input":{"nonce":"%[1]d"}}}}`

// No call is lost when a server forgets its session: those in flight are answered, and
// those that are refused run once on one new session.
func TestForgottenSessionCostsNoCall(t *testing.T) {
	t.Parallel()
	const calls = 20
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprint("busy ", busy), func(t *testing.T) {
			f := &forgetful{goOn: make(chan struct{}), ran: map[string]int{}, busy: busy}
			goOn := sync.OnceFunc(func() { close(f.goOn) })
			send, answers := talkTo(t, f)
			t.Cleanup(goOn) // before the cleanup of talkTo, which waits for the calls
			for n := range calls {
				send(useEcho, n)
			}
			f.forget(t, calls)
			answered := map[string]int{}
			check := func(m wire.Message) {
				answered[string(m.ID)]++
				refused := busy && string(m.ID) == "20" && strings.Contains(string(m.Raw), "429")
				if !refused && !strings.Contains(string(m.Result), `"text":"ran"`) {
					t.Errorf("got %s", m.Raw)
				}
			}
			for n := range calls {
				send(useEcho, calls+n)
			}
			for range calls {
				check(next(t, answers)) // while the first ones wait
			}
			goOn()
			for range calls {
				check(next(t, answers))
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			for n := range 2 * calls {
				if id := fmt.Sprint(n); answered[id] != 1 || f.ran[id] != 1 && !(busy && n == calls && f.ran[id] == 0) {
					t.Errorf("call %d ran %d times and got %d answers", n, f.ran[id], answered[id])
				}
			}
			if f.sessions != 2 {
				t.Errorf("%d sessions were made, want 2", f.sessions)
			}
		})
	}
}
