package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A call that finds the session lost did not run. A call in flight is still answered. Then the
// connection ends, without a DELETE.
func TestHTTPSessionLost(t *testing.T) {
	t.Parallel()
	came, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		if calls.Add(1) == 1 {
			close(came)
			<-goOn
			fine(w, id)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	other := start(c, toolCall(`{}`))
	waitFor(t, "the first call", came)
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, transports.CodeUnreachable, transports.NotSent); !errors.Is(f, ErrSessionLost) {
		t.Errorf("got %v, want %v", f, ErrSessionLost)
	}
	if _, err := tool(t, c, "x", "{}"); !errors.Is(wantFailure(t, err, transports.CodeUnreachable, transports.NotSent), ErrSessionLost) || calls.Load() != 2 {
		t.Errorf("a new call: got %v; %d calls arrived, want 2", err, calls.Load())
	}
	select {
	case <-c.Done():
		t.Error("the connection ended while a call was in flight")
	default:
	}
	close(goOn)
	if err := <-other; err != nil {
		t.Errorf("the other call: got %v", err)
	}
	waitFor(t, "the end", c.Done())
	c.Close()
	if !errors.Is(c.Err(), ErrSessionLost) || strings.Contains(strings.Join(s.requests(), "\n"), "DELETE") {
		t.Errorf("got %v, %q", c.Err(), s.requests())
	}
}

// A scripted is an upstream whose answers a test writes, except for the handshake.
type scripted struct {
	*httptest.Server
	call func(w http.ResponseWriter, r *http.Request, id string) // answers tools/call; nil is an empty result
	get  func(w http.ResponseWriter, r *http.Request)            // nil is 405
	rest func(w http.ResponseWriter, r *http.Request)            // answers other POSTs; nil is 202

	mu   sync.Mutex
	seen []string // METHOD, method, session and version of every request
}

func script(t *testing.T, s *scripted) schema.Server {
	t.Helper()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: s.URL, Headers: map[string]string{"X-Key": "k"}}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := wire.Parse(body)
	s.mu.Lock()
	s.seen = append(s.seen, strings.Join([]string{r.Method, m.Method, r.Header.Get("Mcp-Session-Id"), r.Header.Get("Mcp-Protocol-Version"), r.Header.Get("X-Key")}, " "))
	s.mu.Unlock()
	switch {
	case r.Method == http.MethodGet && s.get != nil:
		s.get(w, r)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Session-Id", "s1")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}}`, m.ID)
	case m.Method == "tools/call" && s.call != nil:
		s.call(w, r, string(m.ID))
	case m.Method == "tools/call":
		fine(w, string(m.ID))
	case s.rest != nil:
		s.rest(w, r)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// wait waits for a request that begins with prefix.
func (s *scripted) wait(t *testing.T, prefix string) {
	t.Helper()
	began := func(request string) bool { return strings.HasPrefix(request, prefix) }
	for end := time.Now().Add(patience); !slices.ContainsFunc(s.requests(), began); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s never came: %q", prefix, s.requests())
		}
	}
}

func events(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

func plain(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// fine answers a call with an empty result.
func fine(w http.ResponseWriter, id string) {
	plain(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
}

// Every request after the handshake has the session and the version. The last one ends the
// session.
func TestHTTPHeaders(t *testing.T) {
	t.Parallel()
	s := &scripted{}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Fatal(err)
	}
	s.wait(t, "GET")
	c.Close()
	want := map[string]bool{
		"POST initialize   k":                            true,
		"POST notifications/initialized s1 2025-06-18 k": true,
		"GET  s1 2025-06-18 k":                           true,
		"POST tools/call s1 2025-06-18 k":                true,
		"DELETE  s1 2025-06-18 k":                        true,
	}
	got := s.requests()
	for _, request := range got {
		if !want[request] {
			t.Errorf("got %q", request)
		}
	}
	if len(got) != len(want) || got[len(got)-1][:6] != "DELETE" {
		t.Errorf("got %q", got)
	}
}

// JSON over several lines is joined to one.
func TestHTTPFolds(t *testing.T) {
	t.Parallel()
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		plain(w, "{\r\n\"jsonrpc\": \"2.0\",\r\n\"id\": "+id+",\n\"result\": {\r\"a\":\n1.0}\r\n}\r\n")
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != `{ "a": 1.0}` {
		t.Errorf("got %q, %v", result, err)
	}
}

// An error status with a body that never ends fails the call.
func TestHTTPEndlessErrorBody(t *testing.T) {
	t.Parallel()
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, _ string) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "oops")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true, timing: timing{bestEffort: 100 * time.Millisecond}})
	_, err := tool(t, c, "x", "{}")
	wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
}

// A JSON-RPC error is returned unchanged, also with an error status.
func TestHTTPErrorWithStatus(t *testing.T) {
	t.Parallel()
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32042,"message":"no","data":1.0}}`)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	_, err := tool(t, c, "x", "{}")
	if rpc, ok := errors.AsType[*wire.Error](err); !ok || string(rpc.JSON()) != `{"code":-32042,"message":"no","data":1.0}` {
		t.Errorf("got %v", err)
	}
}

// Close does not wait for the calls in flight on a connection whose session is lost.
func TestHTTPSessionLostAndClosed(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	var calls atomic.Int32
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, _ string) {
		if calls.Add(1) == 1 {
			close(came)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	other := start(c, toolCall(`{}`))
	waitFor(t, "the first call", came)
	if _, err := tool(t, c, "x", "{}"); !errors.Is(err, ErrSessionLost) {
		t.Errorf("got %v", err)
	}
	c.Close()
	wantFailure(t, <-other, transports.CodeShuttingDown, transports.Unknown)
	if !errors.Is(c.Err(), ErrSessionLost) {
		t.Errorf("got %v", c.Err())
	}
}

// The TypeScript SDK's examples answer 400 for an unknown session. The session is lost, but the
// outcome is unknown: 400 may come from a call that ran.
func TestHTTPSessionLostWith400(t *testing.T) {
	t.Parallel()
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, transports.CodeUnreachable, transports.Unknown); !errors.Is(f, ErrSessionLost) || c.Err() == nil {
		t.Errorf("got %v, %v", f, c.Err())
	}
}

// A cancelled call ends its POST, and is cancelled at the upstream.
func TestHTTPCancel(t *testing.T) {
	t.Parallel()
	came, gone := make(chan struct{}), make(chan struct{})
	s := &scripted{call: func(_ http.ResponseWriter, r *http.Request, _ string) {
		close(came)
		<-r.Context().Done()
		close(gone)
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-came
		cancel()
	}()
	if _, err := c.Call(ctx, "tools/call", []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitFor(t, "the end of the POST", gone)
	s.wait(t, "POST notifications/cancelled")
}

// A cancellation that is being sent when the connection is closed arrives before the DELETE.
func TestHTTPCloseLetsCancelsArrive(t *testing.T) {
	t.Parallel()
	came := make(chan struct{})
	s := &scripted{call: func(_ http.ResponseWriter, r *http.Request, _ string) {
		close(came)
		<-r.Context().Done()
	}}
	c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
	call := &Call{Method: "tools/call", Params: []byte(`{}`), Done: func(json.RawMessage, error) {}}
	c.Start(call)
	waitFor(t, "the call", came)
	c.Cancel(call, nil)
	c.Close()
	// The stream of what the upstream sends unasked is opened at any time.
	seen := slices.DeleteFunc(s.requests(), func(request string) bool { return strings.HasPrefix(request, "GET") })
	if n := len(seen); n < 2 || !strings.HasPrefix(seen[n-2], "POST notifications/cancelled") || !strings.HasPrefix(seen[n-1], "DELETE") {
		t.Errorf("got %q, want the cancel and then DELETE at the end", seen)
	}
}
