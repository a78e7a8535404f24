//go:build e2e

package mcptest_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

const callEcho = `{"jsonrpc":"2.0","id":41,"method":"tools/call","params":{"name":"echo","arguments":{"nonce":"n"}}}`

// TestHTTPAnswers checks the responses of faults, and whether the call ran.
func TestHTTPAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  string
		status int
		runs   int
		fits   func(r mcptest.Reply) bool
	}{
		{"h403", 403, 0, header("Www-Authenticate", `error="insufficient_scope", scope="files:write"`)},
		{"h403:a b", 403, 0, header("Www-Authenticate", `scope="a b"`)},
		{"h404", 404, 0, nil},
		{"h429", 429, 0, header("Retry-After", "1")},
		{"h503:7", 503, 0, header("Retry-After", "7")},
		{"h500", 500, 0, text("<&>")},
		{"h500-after", 500, 1, text("<&>")},
		{"status:418", 418, 0, nil},
		{"truncate-sse", 200, 1, func(r mcptest.Reply) bool {
			return r.Err != nil && strings.HasPrefix(r.Body, ": fakemcp\n\ndata: {\"result\"")
		}},
		{"end-sse", 200, 1, func(r mcptest.Reply) bool { return r.Err == nil && len(r.Messages) == 0 }},
		{"odd-events", 200, 1, func(r mcptest.Reply) bool {
			return len(r.Messages) == 2 && r.Messages[0].Raw == "" && r.Last().Text() == `{"nonce":"n"}` && strings.Contains(r.Body, "event: ping\ndata: not json\n")
		}},
		{"html", 200, 0, header("Content-Type", "text/html; charset=utf-8")},
		{"bad-json", 200, 0, text(`{"jsonrpc":"2.0","id":`)},
		{"empty-200", 200, 0, func(r mcptest.Reply) bool { return r.Body == "" && r.Header.Get("Content-Type") == "application/json" }},
		{"h204", 204, 0, nil},
		{"h202", 202, 0, nil},
		{"slow-header:1", 200, 1, func(r mcptest.Reply) bool { return r.Last().IsAnswer() }},
		{"huge-body:1000000", 200, 0, func(r mcptest.Reply) bool { return len(r.Last().Text()) == 1000000 }},
		{"huge-event:1000000", 200, 0, func(r mcptest.Reply) bool { return len(r.Last().Text()) == 1000000 }},
		{"gzip-bomb:1000000", 200, 0, func(r mcptest.Reply) bool { return len(r.Last().Text()) == 1000000 }},
		{"wrong-id", 200, 1, func(r mcptest.Reply) bool { return string(r.Last().ID) == "987654321" }},
		{"rst", 0, 0, broken},
		{"rst-after", 0, 1, broken},
		{"string-id", 200, 1, func(r mcptest.Reply) bool { return string(r.Last().ID) == `"41"` }},
		{"twice", 200, 1, func(r mcptest.Reply) bool { return len(r.Messages) == 2 }},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			ledger := mcptest.NewLedger(t)
			client := readyWeb(t, "-ledger", ledger.Path, "-fault", c.fault)
			r := client.Post(callEcho)
			if r.Status != c.status || c.fits != nil && !c.fits(r) {
				t.Errorf("got status %d, %v, header %v, body %.300q", r.Status, r.Err, r.Header, r.Body)
			}
			if got := ledger.Count("call echo"); got != c.runs {
				t.Errorf("the call ran %d times, want %d", got, c.runs)
			}
		})
	}
}

func header(name, holds string) func(mcptest.Reply) bool {
	return func(r mcptest.Reply) bool { return strings.Contains(r.Header.Get(name), holds) }
}

func text(holds string) func(mcptest.Reply) bool {
	return func(r mcptest.Reply) bool { return strings.Contains(r.Body, holds) }
}

func broken(r mcptest.Reply) bool { return r.Err != nil && r.Body == "" }

// TestHTTPStalls cancels its requests: these faults last until the client disconnects.
func TestHTTPStalls(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"stall-sse", "slow-header", "slow-body:60000", "hang-call"} {
		ledger := mcptest.NewLedger(t)
		c := readyWeb(t, "-ledger", ledger.Path, "-fault", fault)
		ctx, cancel := context.WithCancel(context.Background())
		replied := make(chan mcptest.Reply)
		go func() { replied <- c.Do(ctx, http.MethodPost, callEcho) }()
		mode, _, _ := strings.Cut(fault, ":")
		ledger.WaitFor("fault "+mode, 1)
		cancel()
		if r := <-replied; !errors.Is(r.Err, context.Canceled) || len(r.Messages) > 0 && r.Last().IsAnswer() {
			t.Errorf("%s: got status %d, %v, body %q", fault, r.Status, r.Err, r.Body)
		}
	}
}

func TestUnauthorizedEverywhere(t *testing.T) {
	t.Parallel()
	c := mcptest.NewClient(t, mcptest.ServeFake(t, "-fault", "h401").URL)
	if r := c.Post(initialize); r.Status != 401 || !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Bearer ") {
		t.Errorf("got status %d", r.Status)
	}
	c = readyWeb(t, "-fault", "h401", "-fault-on", "tools/call", "-fault-times", "1")
	for n, want := range []int{401, 200} {
		if got := c.Post(callEcho).Status; got != want {
			t.Errorf("call %d: got status %d, want %d", n+1, got, want)
		}
	}
}

func TestSessionIsLostOnce(t *testing.T) {
	t.Parallel()
	c := readyWeb(t, "-fault", "h404-once")
	for range 2 { // the second shows that the session stays lost
		if got := c.Post(callEcho).Status; got != 404 {
			t.Errorf("got status %d, want 404", got)
		}
	}
	c.Session = ""
	c.Initialize(version, nil)
	if got := c.Post(callEcho).Status; got != 200 {
		t.Errorf("new session: got status %d, want 200", got)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	for fault, want := range map[string]int{"redirect": 307, "redirect-302": 302} {
		c := mcptest.NewClient(t, mcptest.ServeFake(t, "-fault", fault+":"+elsewhere.URL+"/x").URL)
		if r := c.Post(initialize); r.Status != want || r.Header.Get("Location") != elsewhere.URL+"/x" {
			t.Errorf("%s: got status %d to %q", fault, r.Status, r.Header.Get("Location"))
		}
	}
}

func TestSlowBodyComesByteByByte(t *testing.T) {
	t.Parallel()
	c := readyWeb(t, "-fault", "slow-body:1")
	started := time.Now()
	r := c.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"result":{}}}}`)
	if took := time.Since(started); len(r.Body) < 30 || took < 20*time.Millisecond {
		t.Errorf("got %q in %v", r.Body, took)
	}
}

func TestGzipBombIsSmall(t *testing.T) {
	t.Parallel()
	c := readyWeb(t, "-fault", "gzip-bomb:5000000")
	c.Header.Set("Accept-Encoding", "gzip") // so that net/http does not decompress
	r := c.Post(callEcho)
	if r.Header.Get("Content-Encoding") != "gzip" || len(r.Body) > 100_000 {
		t.Fatalf("got %d bytes", len(r.Body))
	}
	z, err := gzip.NewReader(strings.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, z); err != nil || n < 5000000 {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

func TestNoSession(t *testing.T) {
	t.Parallel()
	c := readyWeb(t, "-fault", "no-session")
	if c.Session != "" || c.Tool("echo", nil).Result == nil {
		t.Errorf("got session %q", c.Session)
	}
}

func TestGetStreamFaults(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]int{"get-status": 405, "get-status:500": 500, "get-html": 200, "get-ends": 200} {
		c := readyWeb(t, "-fault", fault)
		r := c.Do(context.Background(), http.MethodGet, "")
		if r.Status != want || len(r.Messages) > 0 && r.Last().IsAnswer() {
			t.Errorf("%s: got status %d, body %q", fault, r.Status, r.Body)
		}
		if html := strings.HasPrefix(r.Body, "<!DOCTYPE html>"); html != (fault == "get-html") {
			t.Errorf("%s: got body %q", fault, r.Body)
		}
		if c.Tool("echo", nil).Result == nil {
			t.Errorf("%s: a call failed", fault)
		}
	}
}
