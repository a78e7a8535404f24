package upstream

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// remote returns the entry of a fakemcp that serves HTTP.
func remote(t *testing.T, args ...string) schema.Server {
	t.Helper()
	return schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: mcptest.ServeFake(t, args...).URL}
}

func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"-json"}, {"-fault", "no-session"}, {"-fault", "odd-events", "-fault-tool", "pid"}, {"-era", "both"}, {"-era", "new"}, {"-era", "new", "-json"},
		{"-fault", "get-status:405"}, {"-fault", "get-status:404"}, {"-fault", "get-status:500"}, {"-fault", "get-html"}, {"-fault", "get-ends"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			c := dial(t, remote(t, args...), ConnOptions{})
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

// A broken answer fails its call with the outcome that is known. The next call works.
func TestHTTPBrokenAnswer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fault   string
		code    int64
		outcome transports.Outcome
		says    string
	}{
		{"h403", transports.CodeAuthRequired, transports.Unknown, "403"},
		{"h429:7", transports.CodeRateLimited, transports.NotSent, "in 7 seconds"},
		{"h503:100000", transports.CodeRateLimited, transports.Unknown, "in 60 seconds"},
		{"h500", transports.CodeUnreachable, transports.Unknown, "the upstream is broken"},
		{"h500-after", transports.CodeUnreachable, transports.Unknown, "500"},
		{"status:502", transports.CodeUnreachable, transports.Unknown, "502"},
		{"status:418", transports.CodeUnreachable, transports.Unknown, "418"},
		{"status:300", transports.CodeUnreachable, transports.Unknown, "300"},
		{"status:415", transports.CodeUnreachable, transports.NotSent, "415"},
		{"truncate-sse", transports.CodeExited, transports.Unknown, "reading the answer"},
		{"end-sse", transports.CodeExited, transports.Unknown, "ended without the answer"},
		{"stall-sse", transports.CodeTimeout, transports.Unknown, "no answer"},
		{"slow-header", transports.CodeTimeout, transports.Unknown, "no answer"},
		{"slow-body", transports.CodeTimeout, transports.Unknown, "no answer"},
		{"html", transports.CodeProtocol, transports.Unknown, "text/html"},
		{"bad-json", transports.CodeProtocol, transports.Unknown, `{"jsonrpc":"2.0","id":`},
		{"empty-200", transports.CodeProtocol, transports.Unknown, "empty"},
		{"h204", transports.CodeProtocol, transports.Unknown, "204"},
		{"h202", transports.CodeProtocol, transports.Unknown, "202"},
		{"huge-body", transports.CodeTooLarge, transports.Executed, "max_message_bytes"},
		{"huge-event", transports.CodeTooLarge, transports.Executed, "max_message_bytes"},
		{"gzip-bomb", transports.CodeTooLarge, transports.Executed, "max_message_bytes"},
		{"wrong-id", transports.CodeProtocol, transports.Unknown, "not in the response"},
		{"rst", transports.CodeUnreachable, transports.Unknown, ""},
		{"rst-after", transports.CodeUnreachable, transports.Unknown, ""},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			server := remote(t, "-fault", test.fault, "-fault-times", "1")
			server.MaxMessageBytes = 1 << 20
			c := dial(t, server, ConnOptions{})
			if test.code == transports.CodeTimeout {
				setTimeout(c, 3*time.Second)
			}
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
	t.Parallel()
	server := remote(t, "-bearer", "right")
	_, err := tryDial(t, server, ConnOptions{})
	wantFailure(t, err, transports.CodeAuthRequired, transports.NotSent)
	server.Headers = map[string]string{"Authorization": "Bearer right"}
	mustEcho(t, dial(t, server, ConnOptions{}))
}

// waitSent waits until a call that was started has reached the upstream.
func waitSent(t *testing.T, c *Conn) {
	t.Helper()
	mustEcho(t, c)
	mustEcho(t, c)
}

func TestHTTPUnreachable(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:1" // not a port that the system assigns to listeners
	for _, url := range []string{"http://" + address + "/mcp?key=secret", "http://no-such-host.invalid/mcp", "https://" + address} {
		err := callOnly(t, schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: url}, ConnOptions{})
		f := wantFailure(t, err, transports.CodeUnreachable, transports.NotSent)
		if strings.Contains(f.Error(), "secret") {
			t.Errorf("the failure contains the URL: %v", f)
		}
	}
}

// A redirect to another origin is not followed: neither headers nor bodies are sent there.
func TestHTTPRedirect(t *testing.T) {
	t.Parallel()
	for _, code := range []int{301, 302, 303, 307, 308} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			var delivered atomic.Int32
			other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivered.Add(1) }))
			defer other.Close()
			first := httptest.NewServer(http.RedirectHandler(other.URL+"/elsewhere", code))
			defer first.Close()
			server := schema.Server{Name: "up", Transport: schema.StreamableHTTP, URL: first.URL, Headers: map[string]string{"X-Api-Key": "secret", "Authorization": "Bearer secret"}}
			_, err := tryDial(t, server, ConnOptions{HandshakeOnly: true})
			f := wantFailure(t, err, transports.CodeUnreachable, transports.NotSent)
			if !strings.Contains(f.Error(), "redirect to "+other.URL) || strings.Contains(f.Error(), "elsewhere") {
				t.Errorf("got %v", f)
			}
			if n := delivered.Load(); n != 0 {
				t.Errorf("%d requests were delivered", n)
			}
		})
	}
}

func TestHTTPCloseEndsCalls(t *testing.T) {
	t.Parallel()
	c := dial(t, remote(t), ConnOptions{})
	failed := start(c, toolCall(endless))
	waitSent(t, c)
	c.Close()
	wantFailure(t, <-failed, transports.CodeShuttingDown, transports.Unknown)
	_, err := tool(t, c, "echo", "{}")
	wantFailure(t, err, transports.CodeShuttingDown, transports.NotSent)
}

func TestHTTPManyCalls(t *testing.T) {
	t.Parallel()
	manyCalls(t, dial(t, remote(t), ConnOptions{}), 300)
}

// A request follows at most three redirects.
func TestRedirectsAreCounted(t *testing.T) {
	for _, redirects := range []int{3, 4} {
		s := &scripted{call: func(w http.ResponseWriter, r *http.Request, id string) {
			if done := strings.Count(r.URL.Path, "x"); done < redirects {
				http.Redirect(w, r, "/"+strings.Repeat("x", done+1), http.StatusTemporaryRedirect)
				return
			}
			fine(w, id)
		}}
		_, err := tool(t, dial(t, script(t, s), ConnOptions{HandshakeOnly: true}), "x", "{}")
		if (err == nil) != (redirects == 3) {
			t.Errorf("%d redirects: got %v", redirects, err)
		}
	}
}

// A message without an answer is delivered if the status is below 300.
func TestStatusOfANotification(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusAccepted, 299, 300, http.StatusInternalServerError} {
		s := &scripted{rest: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }}
		if _, err := tryDial(t, script(t, s), ConnOptions{HandshakeOnly: true}); (err == nil) != (status < 300) {
			t.Errorf("status %d: got %v", status, err)
		}
	}
}

// An answer may have at most max_message_bytes.
func TestAnswerOfTheLargestSize(t *testing.T) {
	const most = 1000
	for _, size := range []int{most, most + 1} {
		for name, answer := range map[string]func(w http.ResponseWriter, text string){
			"JSON":   plain,
			"events": func(w http.ResponseWriter, text string) { events(w, "data: "+text+"\n\n") },
		} {
			s := &scripted{call: func(w http.ResponseWriter, _ *http.Request, id string) {
				before, after := `{"jsonrpc":"2.0","id":`+id+`,"result":{"x":"`, `"}}`
				answer(w, before+strings.Repeat("x", size-len(before)-len(after))+after)
			}}
			server := script(t, s)
			server.MaxMessageBytes = most
			_, err := tool(t, dial(t, server, ConnOptions{HandshakeOnly: true}), "x", "{}")
			if size == most && err != nil {
				t.Errorf("%s of %d bytes: got %v", name, size, err)
			}
			if size > most {
				wantFailure(t, err, transports.CodeTooLarge, transports.Executed)
			}
		}
	}
}

// Requests have the media types of their bodies and of the accepted answers.
func TestMediaTypesOfRequests(t *testing.T) {
	var got []string
	r := &responder{answer: func(r *http.Request, _ int) (int, string) {
		got = append(got, r.Method+" "+r.Header.Get("Content-Type")+" "+r.Header.Get("Accept"))
		return 405, ""
	}}
	onResponder(t, r, func(c *Conn, l *httpLink) {
		_ = l.post(context.Background(), []byte(`{}`))
		if resp, err := l.listenFrom(context.Background(), ""); err == nil {
			resp.Body.Close()
		}
	})
	if want := []string{"POST application/json application/json, text/event-stream", "GET  text/event-stream"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
