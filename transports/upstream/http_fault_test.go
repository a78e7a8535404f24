package upstream

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
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

// callOnly makes a call without a handshake, which would change the outcome of failures to
// not_sent.
func callOnly(t *testing.T, server schema.Server, opts ConnOptions) error {
	t.Helper()
	c, err := Open(server, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = tool(t, c, "x", "{}")
	return err
}

// quietly discards the log of a test's HTTP server.
var quietly = log.New(io.Discard, "", 0)

// A call is sent once, whichever way it fails, even on a connection that was used before and
// with headers that make requests look idempotent: in these cases net/http sends some again.
func TestHTTPSentOnce(t *testing.T) {
	t.Parallel()
	says := func(text string) func(*testing.T, http.ResponseWriter) {
		return func(t *testing.T, w http.ResponseWriter) {
			conn := hijacked(t, w)
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}
	answers := func(code int) func(*testing.T, http.ResponseWriter) {
		return func(_ *testing.T, w http.ResponseWriter) { w.WriteHeader(code) }
	}
	for name, test := range map[string]struct {
		code  int64
		leave func(t *testing.T, w http.ResponseWriter)
	}{
		"closed": {transports.CodeUnreachable, says("")},
		"reset": {transports.CodeUnreachable, func(t *testing.T, w http.ResponseWriter) {
			conn := hijacked(t, w)
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}},
		"half a header":  {transports.CodeUnreachable, says("HTTP/1.1 2")},
		"not HTTP":       {transports.CodeUnreachable, says("220 mail ready\r\n")},
		"endless header": {transports.CodeUnreachable, says("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20))},
		"500":            {transports.CodeUnreachable, answers(500)},
		"502":            {transports.CodeUnreachable, answers(502)},
		"504":            {transports.CodeUnreachable, answers(504)},
		"half a body":    {transports.CodeExited, says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")},
		"half an event":  {transports.CodeExited, says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: {")},
		"no event":       {transports.CodeExited, says("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			var left atomic.Bool // leave was called
			var used sync.Map    // remote addresses of earlier requests
			s := &scripted{
				call: func(w http.ResponseWriter, r *http.Request, id string) {
					calls.Add(1)
					if _, again := used.LoadOrStore(r.RemoteAddr, true); again && left.CompareAndSwap(false, true) {
						test.leave(t, w)
						return
					}
					fine(w, id)
				},
				get: func(w http.ResponseWriter, r *http.Request) {
					used.Store(r.RemoteAddr, true)
					w.WriteHeader(http.StatusMethodNotAllowed)
				},
			}
			server := script(t, s)
			server.Headers = map[string]string{"Idempotency-Key": "k", "X-Idempotency-Key": "k"}
			c := dial(t, server, ConnOptions{HandshakeOnly: true})
			s.wait(t, "GET")
			var err error
			made := int32(0)
			for ; err == nil && made < 100; made++ {
				_, err = tool(t, c, "x", "{}")
			}
			wantFailure(t, err, test.code, transports.Unknown)
			if _, err := tool(t, c, "x", "{}"); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if n := calls.Load(); n != made+1 || c.Err() != nil {
				t.Errorf("%d calls arrived, want %d; the connection ended: %v", n, made+1, c.Err())
			}
		})
	}
}

// A waiter is a handler of a log that calls on with each message.
type waiter struct {
	slog.Handler
	on func(message string)
}

func (w *waiter) Enabled(context.Context, slog.Level) bool { return true }
func (w *waiter) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *waiter) Handle(_ context.Context, r slog.Record) error {
	w.on(r.Message)
	return nil
}

// If no connection can be made, there is one more try. If that fails too, the call did not run.
func TestHTTPDialsTwice(t *testing.T) {
	t.Parallel()
	var back atomic.Pointer[func()] // called before the second try
	var tries atomic.Int32
	logger := slog.New(&waiter{Handler: slog.DiscardHandler, on: func(message string) {
		if message == "no connection, one more try" {
			tries.Add(1)
			if f := back.Load(); f != nil {
				(*f)()
			}
		}
	}})
	s := &scripted{}
	server := script(t, s)
	s.Config.SetKeepAlivesEnabled(false) // otherwise the call might be sent on a connection that is about to break
	c := dial(t, server, ConnOptions{HandshakeOnly: true, Logger: logger})
	s.wait(t, "GET")
	address := s.Listener.Addr().String()
	s.Close()
	_, err := tool(t, c, "x", "{}")
	for n := 0; n < 3 && err != nil && !strings.Contains(err.Error(), "refused"); n++ {
		_, err = tool(t, c, "x", "{}") // the failed call had a connection that was made before
	}
	if f := wantFailure(t, err, transports.CodeUnreachable, transports.NotSent); !strings.Contains(f.Error(), "refused") || tries.Load() != 1 {
		t.Errorf("got %v after %d more tries, want 1", f, tries.Load())
	}
	comesBack := func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		s.Server = &httptest.Server{Listener: l, Config: &http.Server{Handler: s}}
		s.Start()
		t.Cleanup(s.Server.Close)
	}
	back.Store(&comesBack)
	if _, err := tool(t, c, "x", "{}"); err != nil || tries.Load() != 2 {
		t.Errorf("got %v after %d more tries in all, want 2", err, tries.Load())
	}
}

// A call did not run if the connection ends during the TLS handshake.
func TestHTTPEndsInTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}()
	err = callOnly(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: "https://" + l.Addr().String()}, ConnOptions{})
	wantFailure(t, err, transports.CodeUnreachable, transports.NotSent)
}

// An answer over the limit is neither read nor kept whole: not one of 300 MB, not a small one
// that expands to that size, and not the text of an error.
func TestHTTPHugeAnswer(t *testing.T) {
	const size = 300 << 20
	compressed := func(kind, begin string) func(http.ResponseWriter, chan<- error) {
		return func(w http.ResponseWriter, ended chan<- error) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Content-Encoding", "gzip")
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			_, _ = io.WriteString(z, begin)
			_, err := io.Copy(z, io.LimitReader(letters{}, size))
			ended <- err
		}
	}
	as := func(status int, kind, begin string) func(http.ResponseWriter, chan<- error) {
		return func(w http.ResponseWriter, ended chan<- error) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, begin)
			_, err := io.Copy(w, io.LimitReader(letters{}, size))
			ended <- err
		}
	}
	for _, test := range []struct {
		name    string
		code    int64
		outcome transports.Outcome
		answer  func(http.ResponseWriter, chan<- error)
	}{
		{"JSON", transports.CodeTooLarge, transports.Executed, as(200, "application/json", `{"result":"`)},
		{"an event", transports.CodeTooLarge, transports.Executed, as(200, "text/event-stream", "data: ")},
		{"an event's name", transports.CodeTooLarge, transports.Executed, as(200, "text/event-stream", "event: ")},
		{"compressed JSON", transports.CodeTooLarge, transports.Executed, compressed("application/json", `{"result":"`)},
		{"a compressed event", transports.CodeTooLarge, transports.Executed, compressed("text/event-stream", "data: ")},
		{"a page", transports.CodeProtocol, transports.Unknown, as(200, "text/html", "")},
		{"an error", transports.CodeUnreachable, transports.Unknown, as(500, "text/plain", "")},
	} {
		t.Run(test.name, func(t *testing.T) {
			ended := make(chan error, 1)
			var calls atomic.Int32
			s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				if calls.Add(1) == 1 {
					test.answer(w, ended)
					return
				}
				fine(w, id)
			}}
			server := script(t, s)
			server.MaxMessageBytes = 1 << 20
			c := dial(t, server, ConnOptions{HandshakeOnly: true})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := tool(t, c, "x", "{}")
			runtime.ReadMemStats(&after)
			wantFailure(t, err, test.code, test.outcome)
			if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
				t.Errorf("%d MiB were allocated for a limit of 1", got>>20)
			}
			select {
			case err := <-ended:
				if err == nil && !strings.Contains(test.name, "compressed") {
					t.Error("the whole answer was read")
				}
			case <-time.After(patience):
				t.Error("the connection was not closed")
			}
			if _, err := tool(t, c, "x", "{}"); err != nil || c.Err() != nil {
				t.Errorf("the next call: %v; the connection ended: %v", err, c.Err())
			}
		})
	}
}

// letters is an endless text.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Only a status that rejects the request itself means that the call did not run. Without a
// session 404 does not.
func TestHTTPStatusSaysWhetherItRan(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(int(status.Load()))
	}))
	defer server.Close()
	notRun := []int{401, 405, 406, 413, 415, 429}
	for _, code := range append(notRun,
		201, 202, 204, 206, 300, 301, 302, 303, 304, 305, 307, 308, 400, 402, 403, 404, 407, 408, 409, 410, 411, 412, 414, 416, 417, 418, 421, 422, 423, 424, 425, 426, 428, 431, 451, 499,
		500, 501, 502, 503, 504, 507, 520, 599) {
		status.Store(int32(code))
		err := callOnly(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, ConnOptions{})
		want := transports.Unknown
		if slices.Contains(notRun, code) {
			want = transports.NotSent
		}
		if f, ok := errors.AsType[*transports.Failure](err); !ok || f.Outcome != want {
			t.Errorf("%d: got %v, want %s", code, err, want)
		}
	}
}

// A call that requires a login fails with the scopes that the upstream asks for. The session and
// the next call are not affected.
func TestHTTPLoginNeeded(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		status    int
		challenge []string
		says      string
	}{
		{"no challenge", 401, nil, `check the headers of "up"`},
		{"an expired token", 401, []string{`Bearer error="invalid_token", resource_metadata="http://x/y"`}, `check the headers of "up"`},
		{"too few rights", 403, []string{`Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="http://x/y"`}, "files:read files:write"},
		{"several challenges", 403, []string{`Basic realm="a, b"`, `Bearer scope=admin`}, "admin"},
		{"an unreadable challenge", 403, []string{`"`, `Bearer scope="a`}, `check the headers of "up"`},
		{"a scope with a control character", 401, []string{"Bearer scope=\"a\u202eb\""}, `a\u{202e}b`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls atomic.Int32
			s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				if calls.Add(1) == 1 {
					w.Header()["Www-Authenticate"] = test.challenge
					w.WriteHeader(test.status)
					return
				}
				fine(w, id)
			}}
			c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
			_, err := tool(t, c, "x", "{}")
			outcome := map[int]transports.Outcome{401: transports.NotSent, 403: transports.Unknown}[test.status]
			if f := wantFailure(t, err, transports.CodeAuthRequired, outcome); !strings.Contains(f.Hint, test.says) {
				t.Errorf("got %q, want it to say %q", f.Hint, test.says)
			}
			if _, err := tool(t, c, "x", "{}"); err != nil || c.Err() != nil || calls.Load() != 2 {
				t.Errorf("the next call: %v; the connection ended: %v; %d calls arrived", err, c.Err(), calls.Load())
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "-3": 0, "60": time.Minute, "61": time.Minute, "99999999999": time.Minute, "99999999999999999999": 0,
		"": 0, "soon": 0, "1.5": 0,
		"Tue, 28 Jul 2026 12:00:20 GMT":   20 * time.Second,
		"Tuesday, 28-Jul-26 12:00:20 GMT": 20 * time.Second,
		"Tue Jul 28 12:00:20 2026":        20 * time.Second,
		"Tue, 28 Jul 2026 11:00:00 GMT":   0,
		"Tue, 28 Jul 2037 12:00:20 GMT":   time.Minute,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: got %s, want %s", header, got, want)
		}
	}
}

// The failure of a call that was rejected with Retry-After says when to try again. If the call may
// have run, it says to look first.
func TestHTTPBusy(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		outcome transports.Outcome
		hint    string
	}{
		429: {transports.NotSent, "try again in 7 seconds"},
		503: {transports.Unknown, transports.LookFirst + "; try again in 7 seconds"},
	} {
		s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		}}
		c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
		_, err := tool(t, c, "x", "{}")
		f := wantFailure(t, err, transports.CodeRateLimited, want.outcome)
		if got := string(wire.Get(f.Wire().Data, "retry_after_ms")); got != "7000" || f.Hint != want.hint {
			t.Errorf("%d: got retry_after_ms %s, hint %q", status, got, f.Hint)
		}
	}
}

// A request has the headers of the config and those of the protocol, and no others: nothing of
// the host, and no cookie that an upstream set.
func TestHTTPNoOtherHeaders(t *testing.T) {
	t.Parallel()
	allowed := []string{
		"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent", "Last-Event-Id", "X-Key",
		"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name",
	}
	for _, era := range []string{"old", "new"} {
		t.Run(era, func(t *testing.T) {
			var mu sync.Mutex
			met := map[string]bool{}
			target := remote(t, "-era", era).URL
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, _ := wire.Parse(body)
				mu.Lock()
				met[r.Method+" "+m.Method] = true
				mu.Unlock()
				for name := range r.Header {
					if !slices.Contains(allowed, name) {
						t.Errorf("%s %s carries %s", r.Method, m.Method, name)
					}
				}
				if r.Header.Get("X-Key") != "k" || r.Referer() != "" {
					t.Errorf("%s %s: X-Key is %q, the referrer %q", r.Method, m.Method, r.Header.Get("X-Key"), r.Referer())
				}
				passOn(t, w, r, target, body)
			}))
			t.Cleanup(proxy.Close)
			server := schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: proxy.URL, Headers: map[string]string{"X-Key": "k"}}
			c := dial(t, server, ConnOptions{HandshakeOnly: era == "old"})
			for _, call := range [][2]string{
				{"tools/call", `{"name":"echo","arguments":{"Authorization":"host"},"_meta":{"Cookie":"host"}}`},
				{"tools/list", `{}`}, {"resources/list", `{}`}, {"resources/templates/list", `{}`}, {"prompts/list", `{}`},
				{"resources/read", `{"uri":"fake://fakemcp/a"}`}, {"prompts/get", `{"name":"x"}`}, {"ping", `{}`}, {"completion/complete", `{}`}, {"x/y", `{}`},
			} {
				_, _ = c.Call(t.Context(), call[0], []byte(call[1])) // a refused request was sent too
			}
			_ = c.Subscribe(t.Context(), []byte(`{"uri":"fake://fakemcp/a"}`))
			_ = c.Notify("notifications/roots/list_changed", nil)
			c.Close()
			mu.Lock()
			defer mu.Unlock()
			if len(met) < 12 {
				t.Errorf("got only the requests %v", met)
			}
		})
	}
}

// passOn is a proxy that adds a cookie to every answer.
func passOn(t *testing.T, w http.ResponseWriter, r *http.Request, target string, body []byte) {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, target, strings.NewReader(string(body)))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Set-Cookie", "sid=1; Path=/")
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		w.Header().Set("Mcp-Session-Id", id)
	}
	w.WriteHeader(resp.StatusCode)
	_ = http.NewResponseController(w).Flush()
	buffer := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buffer)
		_, _ = w.Write(buffer[:n])
		_ = http.NewResponseController(w).Flush()
		if err != nil {
			return
		}
	}
}

// A redirect of a call is followed if it stays within the origin and keeps the method. Any other
// redirect fails the call.
func TestHTTPRedirectOfCall(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer elsewhere.Close()
	for _, test := range []struct {
		code  int
		to    string // URL is the upstream's own
		fails string
	}{
		{307, "URL/moved", ""}, {308, "/moved", ""},
		{301, "URL/moved", "redirect"}, {302, "/moved", "redirect"}, {303, "/moved", "redirect"},
		{307, elsewhere.URL, "redirect to " + elsewhere.URL}, {308, strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1), "redirect to http://localhost"},
		{307, "httpsURL", "redirect to https://"}, {302, elsewhere.URL, "redirect to " + elsewhere.URL}, {307, "//other.example/x", "redirect to http://other.example"},
		{307, "ftp://x/", "redirect to ftp://x"}, {307, "URL/again", "redirect"},
	} {
		t.Run(fmt.Sprint(test.code, " ", test.fails, " ", strings.HasPrefix(test.to, "/")), func(t *testing.T) {
			var calls, moved atomic.Int32
			s := &scripted{}
			s.call = func(w http.ResponseWriter, r *http.Request, id string) {
				if r.URL.Path == "/moved" {
					moved.Add(1)
					fine(w, id)
					return
				}
				calls.Add(1)
				to := strings.Replace(strings.Replace(test.to, "httpsURL", strings.Replace(s.URL, "http:", "https:", 1), 1), "URL", s.URL, 1)
				w.Header().Set("Location", to)
				w.WriteHeader(test.code)
			}
			c := dial(t, script(t, s), ConnOptions{HandshakeOnly: true})
			_, err := tool(t, c, "x", "{}")
			if test.fails == "" {
				if err != nil || calls.Load() != 1 || moved.Load() != 1 {
					t.Errorf("got %v; %d calls arrived, %d at the new address", err, calls.Load(), moved.Load())
				}
				return
			}
			f := wantFailure(t, err, transports.CodeUnreachable, transports.Unknown)
			if !strings.Contains(f.Error(), test.fails) || moved.Load() != 0 {
				t.Errorf("got %v, want it to say %q; %d calls arrived at the new address", f, test.fails, moved.Load())
			}
		})
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// Redirects of the GET stream and of DELETE are not followed to another origin either.
func TestHTTPRedirectOfTheRest(t *testing.T) {
	t.Parallel()
	var strayed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer elsewhere.Close()
	s := &scripted{}
	server := script(t, s)
	inner := s.Config.Handler
	away := http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect)
	got := make(chan string, 10)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			inner.ServeHTTP(w, r)
			return
		}
		away.ServeHTTP(w, r)
		got <- r.Method
	})
	c := dial(t, server, ConnOptions{HandshakeOnly: true})
	if method := <-got; method != http.MethodGet {
		t.Errorf("got %s", method)
	}
	if _, err := tool(t, c, "x", "{}"); err != nil {
		t.Error(err)
	}
	c.Close()
	for method := range got {
		if method == http.MethodDelete {
			break
		}
	}
	sse := httptest.NewServer(away)
	defer sse.Close()
	_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.SSE, URL: sse.URL, Headers: map[string]string{"X-Key": "k"}}, ConnOptions{})
	wantFailure(t, err, transports.CodeUnreachable, transports.NotSent)
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// The hint of Login.Hint takes precedence over our own.
func TestHTTPLoginHint(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(server.Close)
	login := Login{
		Transport: func(base http.RoundTripper) http.RoundTripper { return base },
		Hint:      func(*http.Response) (string, bool) { return "log in", true },
	}
	_, err := tryDial(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: server.URL}, ConnOptions{HandshakeOnly: true, Login: login})
	if f := wantFailure(t, err, transports.CodeAuthRequired, transports.NotSent); f.Hint != "log in" || !f.Login {
		t.Errorf("got hint %q", f.Hint)
	}
}

// The failure for an unknown host is in plain words, without the resolver's address.
func TestHTTPUnknownHost(t *testing.T) {
	t.Parallel()
	l := newHTTPLink(newConn(schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: "http://mcp.example.com/mcp"}, ConnOptions{}))
	lookup := &net.DNSError{Err: "no such host", Name: "mcp.example.com", Server: "192.0.2.1:53", IsNotFound: true}
	err := l.requestFailure(&net.OpError{Op: "dial", Net: "tcp", Err: lookup})
	if want := "up: there is no host mcp.example.com"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}
