package transports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dynmcp/internal/mcptest"
	"dynmcp/internal/wire"
	"dynmcp/schema"
)

// remote returns the entry of a fakemcp that serves HTTP.
func remote(t *testing.T, args ...string) schema.Server {
	t.Helper()
	return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: mcptest.ServeFake(t, args...).URL}
}

func TestHTTPAnswers(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-json"}, {"-fault", "no-session"}, {"-fault", "odd-events", "-fault-tool", "pid"}, {"-era", "both"}, {"-era", "new"}, {"-era", "new", "-json"},
		{"-fault", "get-status:405"}, {"-fault", "get-status:404"}, {"-fault", "get-status:500"}, {"-fault", "get-html"}, {"-fault", "get-ends"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			c := dial(t, remote(t, args...), Options{})
			if _, err := tool(t, c, "pid", "{}"); err != nil {
				t.Fatal(err)
			}
			mustEcho(t, c)
			if err := c.Err(); err != nil {
				t.Errorf("the connection ended: %v", err)
			}
		})
	}
}

// A broken answer fails its call with what is known, and the next one works.
func TestHTTPBrokenAnswer(t *testing.T) {
	for _, test := range []struct {
		fault   string
		code    int64
		outcome Outcome
		says    string
	}{
		{"h403", CodeAuthRequired, NotSent, "403"},
		{"h429:7", CodeRateLimited, NotSent, "in 7 seconds"},
		{"h503:100000", CodeRateLimited, NotSent, "in 60 seconds"},
		{"h500", CodeUnreachable, Unknown, "the upstream is broken"},
		{"h500-after", CodeUnreachable, Unknown, "500"},
		{"status:502", CodeUnreachable, Unknown, "502"},
		{"status:418", CodeUnreachable, NotSent, "418"},
		{"truncate-sse", CodeExited, Unknown, "reading the answer"},
		{"end-sse", CodeExited, Unknown, "ended without the answer"},
		{"stall-sse", CodeTimeout, Unknown, "no answer"},
		{"slow-header", CodeTimeout, Unknown, "no answer"},
		{"slow-body", CodeTimeout, Unknown, "no answer"},
		{"html", CodeProtocol, Unknown, "text/html"},
		{"bad-json", CodeProtocol, Unknown, `{"jsonrpc":"2.0","id":`},
		{"empty-200", CodeProtocol, Unknown, "empty"},
		{"h204", CodeProtocol, Unknown, "204"},
		{"h202", CodeProtocol, Unknown, "202"},
		{"huge-body", CodeTooLarge, Done, "max_message_bytes"},
		{"huge-event", CodeTooLarge, Done, "max_message_bytes"},
		{"gzip-bomb", CodeTooLarge, Done, "max_message_bytes"},
		{"wrong-id", CodeProtocol, Unknown, "not in the response"},
		{"rst", CodeUnreachable, Unknown, ""},
		{"rst-after", CodeUnreachable, Unknown, ""},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			server := remote(t, "-fault", test.fault, "-fault-times", "1")
			server.MaxMessageBytes = 1 << 20
			if test.code == CodeTimeout {
				server.Timeout = 300 * time.Millisecond
			}
			c := dial(t, server, Options{})
			_, err := tool(t, c, "echo", "{}")
			f := wantFailure(t, err, test.code, test.outcome)
			if !strings.Contains(f.Text(), test.says) {
				t.Errorf("got %s, want it to say %q", f.Text(), test.says)
			}
			mustEcho(t, c)
		})
	}
}

func TestHTTPNeedsLogin(t *testing.T) {
	server := remote(t, "-bearer", "right")
	_, err := tryDial(t, server, Options{})
	wantFailure(t, err, CodeAuthRequired, NotSent)
	server.Headers = map[string]string{"Authorization": "Bearer right"}
	mustEcho(t, dial(t, server, Options{}))
}

// A lost session: the call that was told so did not run, others may have; the
// connection is over, and the session needs no end.
func TestHTTPSessionLost(t *testing.T) {
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
	c := dial(t, script(t, s), Options{Legacy: true})
	other := make(chan error, 1)
	c.Start(&Call{Method: "tools/call", Params: []byte(`{}`), Done: func(_ json.RawMessage, err error) { other <- err }})
	waitFor(t, "the first call", came)
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, CodeUnreachable, NotSent); !errors.Is(f, ErrSessionLost) {
		t.Errorf("got %v, want %v", f, ErrSessionLost)
	}
	if f := wantFailure(t, <-other, CodeUnreachable, Unknown); !errors.Is(f, ErrSessionLost) {
		t.Errorf("the other call: got %v", f)
	}
	waitFor(t, "the end", c.Done())
	c.Close()
	if !errors.Is(c.Err(), ErrSessionLost) || strings.Contains(strings.Join(s.requests(), "\n"), "DELETE") {
		t.Errorf("got %v, %q", c.Err(), s.requests())
	}
}

// waitSent waits until a call that was started hangs at the upstream.
func waitSent(t *testing.T, c *Conn) {
	t.Helper()
	mustEcho(t, c)
	mustEcho(t, c)
}

func TestHTTPUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	for _, url := range []string{"http://" + address + "/mcp?key=secret", "http://no-such-host.invalid/mcp", "https://" + address} {
		_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: url}, Options{})
		f := wantFailure(t, err, CodeUnreachable, NotSent)
		if strings.Contains(f.Error(), "secret") {
			t.Errorf("the URL is told: %v", f)
		}
	}
}

func TestHTTPWrongCertificate(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, Options{})
	if f := wantFailure(t, err, CodeUnreachable, NotSent); !strings.Contains(f.Error(), "x509") {
		t.Errorf("got %v, want the reason", f)
	}
}

// Nothing of ours is taken to another origin: no header, no body.
func TestHTTPRedirect(t *testing.T) {
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			var delivered atomic.Int32
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered.Add(1) }))
			defer other.Close()
			first := httptest.NewServer(http.RedirectHandler(other.URL+"/elsewhere", code))
			defer first.Close()
			server := schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: first.URL, Headers: map[string]string{"X-Api-Key": "secret", "Authorization": "Bearer secret"}}
			_, err := tryDial(t, server, Options{Legacy: true})
			f := wantFailure(t, err, CodeUnreachable, NotSent)
			if !strings.Contains(f.Error(), "redirect to "+other.URL) || strings.Contains(f.Error(), "elsewhere") {
				t.Errorf("got %v", f)
			}
			if n := delivered.Load(); n != 0 {
				t.Errorf("%d requests were delivered", n)
			}
		})
	}
}

// A scripted is an upstream whose answers a test writes. The handshake is done
// for it.
type scripted struct {
	*httptest.Server
	call func(w http.ResponseWriter, r *http.Request, id string) // answers tools/call
	get  func(w http.ResponseWriter, r *http.Request)            // nil is 405

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
	case m.Method == "tools/call":
		s.call(w, r, string(m.ID))
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

// wait waits for a request that begins so.
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

// Every request after the handshake names the session and the version, and the
// session is ended.
func TestHTTPHeaders(t *testing.T) {
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		plain(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
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

// An upstream may write its JSON over several lines; for us it is one.
func TestHTTPFolds(t *testing.T) {
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		plain(w, "{\r\n\"jsonrpc\": \"2.0\",\r\n\"id\": "+id+",\n\"result\": {\r\"a\":\n1.0}\r\n}\r\n")
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != `{ "a": 1.0}` {
		t.Errorf("got %q, %v", result, err)
	}
}

// What comes on a call's stream besides its answer.
func TestHTTPStreamOfCall(t *testing.T) {
	for _, test := range []struct{ name, events string }{
		{"an event over several lines", ": hello\n\nid: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata:\"id\":ID,\r\ndata: \"result\":{}}\r\n\r\n"},
		{"an event that is no message", "data: {\"broken\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"the answer to another call", "data: {\"jsonrpc\":\"2.0\",\"id\":OTHER,\"result\":{\"wrong\":1}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"no empty line at the end", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}"},
		{"a byte order mark", "\ufeffdata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"},
		{"a batch", "data: [{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"},{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}]\n\n"},
		{"the answer twice", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"second\":1}}\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var other atomic.Pointer[string]
			hang := make(chan struct{})
			s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
				if other.CompareAndSwap(nil, &id) {
					select {
					case <-hang:
					case <-r.Context().Done():
					}
					plain(w, `{"jsonrpc":"2.0","id":`+id+`,"result":{"right":1}}`)
					return
				}
				events(w, strings.NewReplacer("ID", id, "OTHER", *other.Load()).Replace(test.events))
			}}
			c := dial(t, script(t, s), Options{Legacy: true})
			first := make(chan string, 1)
			c.Start(&Call{Method: "tools/call", Params: []byte(`{}`), Done: func(result json.RawMessage, err error) { first <- fmt.Sprint(string(result), err) }})
			for other.Load() == nil {
				time.Sleep(time.Millisecond)
			}
			if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != "{}" {
				t.Errorf("got %s, %v", result, err)
			}
			close(hang)
			if got := <-first; got != `{"right":1}<nil>` {
				t.Errorf("the other call: got %s", got)
			}
		})
	}
}

// A stream that stays open behind the answer is let go of.
func TestHTTPStreamStaysOpen(t *testing.T) {
	closed := make(chan struct{})
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
		events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":"+id+",\"result\":{}}\n\n")
		<-r.Context().Done()
		close(closed)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Error(err)
	}
	waitFor(t, "the end of the stream", closed)
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
}

// An error answer whose body never ends is an answer all the same.
func TestHTTPEndlessErrorBody(t *testing.T) {
	s := &scripted{call: func(w http.ResponseWriter, r *http.Request, _ string) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "oops")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	_, err := tool(t, c, "x", "{}")
	wantFailure(t, err, CodeUnreachable, Unknown)
}

// A JSON-RPC error passes as it is, whatever the status it came with.
func TestHTTPErrorWithStatus(t *testing.T) {
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32042,"message":"no","data":1.0}}`)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	_, err := tool(t, c, "x", "{}")
	var rpc *wire.Error
	if !errors.As(err, &rpc) || string(rpc.JSON()) != `{"code":-32042,"message":"no","data":1.0}` {
		t.Errorf("got %v", err)
	}
}

// The TypeScript SDK's examples answer 400 for a session they do not know.
func TestHTTPSessionLostWith400(t *testing.T) {
	s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, _ string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	_, err := tool(t, c, "x", "{}")
	if f := wantFailure(t, err, CodeUnreachable, NotSent); !errors.Is(f, ErrSessionLost) || c.Err() == nil {
		t.Errorf("got %v, %v", f, c.Err())
	}
}

// A stream that ends before its answer is taken up behind its last event.
func TestHTTPResume(t *testing.T) {
	var asked atomic.Pointer[string]
	s := &scripted{
		call: func(w http.ResponseWriter, _ *http.Request, id string) {
			asked.Store(&id)
			events(w, "id: e1\nretry: 5\ndata: \n\n")
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("Last-Event-ID") {
			case "e1":
				events(w, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n")
			case "e2":
				events(w, "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+*asked.Load()+",\"result\":{\"late\":1}}\n\n")
			default:
				w.WriteHeader(http.StatusMethodNotAllowed)
			}
		},
	}
	peer := &recorder{}
	c := dial(t, script(t, s), Options{Legacy: true, Peer: peer})
	if result, err := tool(t, c, "x", "{}"); err != nil || string(result) != `{"late":1}` {
		t.Errorf("got %s, %v", result, err)
	}
	if got := peer.all(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestHTTPResumeGivesUp(t *testing.T) {
	s := &scripted{
		call: func(w http.ResponseWriter, _ *http.Request, _ string) { events(w, "id: e1\nretry: 1\ndata: \n\n") },
		get: func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Last-Event-ID") != "" {
				events(w, ": nothing\n\n")
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
		},
	}
	c := dial(t, script(t, s), Options{Legacy: true})
	_, err := tool(t, c, "x", "{}")
	wantFailure(t, err, CodeExited, Unknown)
}

// What the upstream says unasked comes on the GET stream, which is opened again
// where it stopped.
func TestHTTPListens(t *testing.T) {
	s := &scripted{get: func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Last-Event-ID") {
		case "":
			events(w, "id: 1\nretry: 5\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/a\",\"params\":{\"f\":1.0}}\n\n")
		case "1":
			events(w, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/b\"}\n\n")
		default:
			events(w, ": quiet\n\n")
			<-r.Context().Done()
		}
	}}
	peer := &recorder{}
	dial(t, script(t, s), Options{Legacy: true, Peer: peer})
	got := peer.wait(t, 2)
	if got[0] != `notifications/a {"f":1.0}` || got[1] != "notifications/b " {
		t.Errorf("got %q", got)
	}
}

// A session that the GET stream finds lost ends the connection, but only where
// there was such a stream.
func TestHTTPListenFindsSessionLost(t *testing.T) {
	var opened atomic.Bool
	s := &scripted{get: func(w http.ResponseWriter, _ *http.Request) {
		if opened.CompareAndSwap(false, true) {
			events(w, "retry: 5\n\n")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
	waitFor(t, "the end", c.Done())
	if !errors.Is(c.Err(), ErrSessionLost) {
		t.Errorf("got %v", c.Err())
	}
}

// The end of a call that was cancelled ends its POST, and the upstream is told.
func TestHTTPCancel(t *testing.T) {
	came, gone := make(chan struct{}), make(chan struct{})
	s := &scripted{call: func(_ http.ResponseWriter, r *http.Request, _ string) {
		close(came)
		<-r.Context().Done()
		close(gone)
	}}
	c := dial(t, script(t, s), Options{Legacy: true})
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

func TestHTTPCloseEndsCalls(t *testing.T) {
	c := dial(t, remote(t), Options{})
	failed := make(chan error, 1)
	c.Start(&Call{Method: "tools/call", Params: []byte(`{"name":"sleep","arguments":{"ms":0}}`), Done: func(_ json.RawMessage, err error) { failed <- err }})
	waitSent(t, c)
	c.Close()
	wantFailure(t, <-failed, CodeShuttingDown, Unknown)
	_, err := tool(t, c, "echo", "{}")
	wantFailure(t, err, CodeShuttingDown, NotSent)
}

func TestHTTPManyCalls(t *testing.T) {
	c := dial(t, remote(t), Options{})
	const calls = 300
	failed := make(chan error, calls)
	for n := range calls {
		want := fmt.Sprintf(`{"nonce":"n%d"}`, n)
		c.Start(&Call{Method: "tools/call", Params: fmt.Appendf(nil, `{"name":"echo","arguments":%s}`, want), Done: func(result json.RawMessage, err error) {
			if got := string(wire.Get(result, "structuredContent")); err == nil && got != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			failed <- err
		}})
	}
	for range calls {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

func TestSSEUpstream(t *testing.T) {
	server := remote(t, "-sse")
	server.Transport = schema.SSE
	peer := &recorder{}
	c := dial(t, server, Options{Peer: peer})
	mustEcho(t, c)
	if _, err := tool(t, c, "notify", `{"method":"notifications/x"}`); err != nil {
		t.Fatal(err)
	}
	peer.wait(t, 1)
}

func TestReadEvents(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"data: 1\n\ndata: 2\n\n", []string{"||1", "||2"}},
		{"event: e\nid: 7\ndata:a\ndata:  b\ndata\n\n", []string{"e|7|a\n b\n"}},
		{"id: 7\n\n: c\n\n", []string{"|7|", "||"}},
		{"data: 1\r\n\r\n\n\ndata: 2", []string{"||1", "||2"}},
		{"data: 1\n\ndata: {\"cut", []string{"||1"}},
		{"\ufeffdata: 1\n\n", []string{"||1"}},
	} {
		var got []string
		err := readEvents(strings.NewReader(test.in), 100, func(e event) { got = append(got, e.name+"|"+e.id+"|"+string(e.data)) })
		if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%q: got %q, %v, want %q", test.in, got, err, test.want)
		}
	}
	for _, in := range []string{"data: " + strings.Repeat("x", 101) + "\n\n", strings.Repeat("data: xxxxxxxxxx\n", 11), "data: " + strings.Repeat("x", 1<<20)} {
		if err := readEvents(strings.NewReader(in), 100, func(event) {}); !errors.Is(err, errTooLarge) {
			t.Errorf("%.20q…: got %v, want %v", in, err, errTooLarge)
		}
	}
}
