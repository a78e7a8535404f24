package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dynmcp/dynmcp/transports/host"
)

// The checks of Host and Origin apply to every route. The gateway allows its default names,
// mcp.example.com, a name with a port, and two origins. The page allows the default names only.
func TestHostAndOrigin(t *testing.T) {
	t.Parallel()
	found := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	page := httptest.NewServer(Local("", found))
	defer page.Close()
	tg := newTestGateway(t, GatewayOptions{
		Metrics:        found,
		AllowedHosts:   []string{"localhost", "127.0.0.1", "::1", "mcp.example.com", "other.example.com:8443"},
		AllowedOrigins: []string{"https://app.example.com", "http://localhost:3000"},
	}, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(tg.url, "http://"), ":")
	rows := []struct {
		headers string // of the request, after the request line
		status  int
	}{
		{"Host: localhost", 200},
		{"Host: localhost:" + port, 200},
		{"Host: LOCALHOST:" + port, 200},
		{"Host: 127.0.0.1", 200},
		{"Host: 127.0.0.1:" + port, 200},
		{"Host: [::1]:" + port, 200},
		{"Host: [::1]", 200},
		{"Host: mcp.example.com", 200},
		{"Host: MCP.example.com:443", 200},
		{"Host: other.example.com:8443", 200},
		{"Host: other.example.com:8444", 403},
		{"Host: other.example.com", 403},
		{"Host: evil.com", 403},
		{"Host: evil.com:" + port, 403},
		{"Host: localhost.evil.com", 403},
		{"Host: evillocalhost", 403},
		{"Host: 127.0.0.1.nip.io", 403},
		{"Host: 127.0.0.2", 403},
		{"Host: 0.0.0.0:" + port, 403},
		{"Host: [::]:" + port, 403},
		{"Host: [::ffff:127.0.0.1]", 403},
		{"Host: 2130706433", 403},
		{"Host: 0x7f.1", 403},
		{"Host: localhost.", 403},
		{"Host: localhost:http", 403},
		{"Host: user@localhost", 400}, // net/http's answer
		{"Host: ", 403},
		{"X-Forwarded-Host: localhost\r\nHost: evil.com", 403},
		{"Forwarded: host=localhost\r\nHost: evil.com", 403},
		{"Host: localhost\r\nHost: evil.com", 400}, // net/http's answer
		{"X-None: 1", 400},                         // the same: no Host at all
		{"Host: localhost\r\nOrigin: https://app.example.com", 200},
		{"Host: localhost:" + port + "\r\nOrigin: http://localhost:" + port, 200},
		{"Host: localhost\r\nOrigin: http://localhost:3000", 200},
		{"Host: localhost\r\nOrigin: http://localhost:3001", 403},
		{"Host: localhost\r\nOrigin: https://localhost:3000", 403},
		{"Host: localhost\r\nOrigin: http://evil.com", 403},
		{"Host: evil.com\r\nOrigin: http://evil.com", 403},
		{"Host: localhost\r\nOrigin: null", 403},
		{"Host: localhost\r\nOrigin: ", 403},
		{"Host: localhost\r\nOrigin: https://app.example.com/path", 403},
		{"Host: localhost\r\nOrigin: https://user@app.example.com", 403},
		{"Host: localhost\r\nOrigin: https://app.example.com.evil.com", 403},
		{"Host: localhost\r\nOrigin: https://APP.example.com", 403},
		{"Host: localhost\r\nOrigin: https://app.example.com\r\nOrigin: http://evil.com", 403},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site", 403},
		{"Host: localhost\r\nSec-Fetch-Site: same-site", 403},
		{"Host: localhost\r\nSec-Fetch-Site: same-origin", 200},
		{"Host: localhost\r\nSec-Fetch-Site: none", 200},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site\r\nOrigin: https://app.example.com", 200},
	}
	_, pagePort, _ := strings.Cut(strings.TrimPrefix(page.URL, "http://"), ":")
	for _, row := range rows {
		for _, route := range []string{
			"GET /health", "GET /health/git", "GET /metrics", "OPTIONS /mcp", "POST /mcp", "GET /mcp", "DELETE /mcp", "POST /mcp/git", "GET /mcp/git", "DELETE /mcp/git",
			"POST /mcp/git/message", "POST /mcp/git/message?sessionId=x", "POST /meta_tree", "POST /meta_desc", "POST /meta_call", "GET /nothing",
		} {
			// An allowed request has no effect: it accepts no answer, and has no body.
			got := tg.raw(route + " HTTP/1.1\r\nAccept: text/plain\r\n" + row.headers + "\r\nConnection: close\r\n\r\n")
			check(t, route, row.headers, got, row.status)
		}
		want := row.status
		if want == 200 && (strings.Contains(row.headers, "example.com") || strings.Contains(row.headers, "Origin: http://localhost:3000")) {
			want = 403
		}
		headers := strings.ReplaceAll(row.headers, ":"+port, ":"+pagePort)
		got := (&testGateway{t: t, url: page.URL}).raw("GET /debug HTTP/1.1\r\n" + headers + "\r\nConnection: close\r\n\r\n")
		check(t, "GET /debug", headers, got, want)
	}
	if got := tg.raw("GET http://evil.com/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 403 ") {
		t.Errorf("the target contradicts Host: got %s", got)
	}
	if got := tg.raw("GET /health HTTP/1.0\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.0 403 ") {
		t.Errorf("HTTP/1.0 without Host: got %s", got)
	}
	for _, c := range [][2]string{{"POST", "/mcp"}, {"GET", "/mcp"}, {"DELETE", "/mcp"}, {"POST", "/mcp/git"}, {"GET", "/mcp/git"}, {"POST", "/mcp/git/message"}, {"OPTIONS", "/mcp"}, {"GET", "/nothing"}, {"GET", "/debug"}, {"GET", "/metrics"}} {
		for _, headers := range [][]string{{"Host", "evil.com"}, {"Origin", "http://evil.com"}, {"Sec-Fetch-Site", "cross-site"}} {
			if a := tg.do(c[0], c[1], initialize, headers...); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s of %v: got %+v", c[0], c[1], headers, a)
			}
		}
	}
	if tg.opened.Load() != 0 {
		t.Error("a session was opened")
	}
}

// check fails the test if a response does not have the wanted status. 200 stands for any status
// of an allowed request.
func check(t *testing.T, route, headers, got string, want int) {
	t.Helper()
	ok := strings.HasPrefix(got, fmt.Sprintf("HTTP/1.1 %d ", want))
	if want == 200 && !strings.Contains(route, "/health") {
		ok = strings.HasPrefix(got, "HTTP/1.1 ") && !strings.HasPrefix(got, "HTTP/1.1 403 ")
	}
	if !ok {
		t.Errorf("%s, %q: want %d, got %s", route, headers, want, got)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{AllowedOrigins: []string{"http://localhost:3000"}, Token: "secret"}, nil)
	a := tg.do("OPTIONS", "/mcp/git", "", "Origin", "http://localhost:3000", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,mcp-param-region")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" || !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "POST") ||
		a.header.Get("Access-Control-Allow-Headers") != "content-type,mcp-param-region" {
		t.Errorf("a preflight without a token: got %+v", a)
	}
	a = tg.do("GET", "/health", "", "Origin", "http://localhost:3000", "Authorization", "Bearer secret")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" || !strings.Contains(a.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("got %+v", a)
	}
}

func TestTokenIsRequiredOnEveryRouteButHealth(t *testing.T) {
	t.Parallel()
	tg := newTestGateway(t, GatewayOptions{Token: "secret"}, nil)
	for _, c := range [][2]string{{"POST", "/mcp"}, {"GET", "/mcp"}, {"DELETE", "/mcp"}, {"POST", "/mcp/git"}, {"POST", "/mcp/git/message"}, {"GET", "/mcp/git"}, {"POST", "/health"}, {"GET", "/health/git"}, {"GET", "/nothing"}} {
		for _, given := range []string{"", "Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"} {
			a := tg.do(c[0], c[1], initialize, "Authorization", given)
			if a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s %s with %q: got %+v", c[0], c[1], given, a)
			}
		}
	}
	if a := tg.do("POST", "/mcp", initialize, "Authorization", "bearer secret"); a.status != 200 {
		t.Errorf("got %+v", a)
	}
	if a := tg.do("GET", "/health", ""); a.status != 200 {
		t.Errorf("the health check of a load balancer: got %+v", a)
	}
}

// A session can be used only by the principal that opened it.
func TestASessionIsForItsPrincipal(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	tg := newTestGateway(t, GatewayOptions{}, func(r *host.Request) {
		asked <- string(r.ID)
		r.Reply([]byte(`{}`), nil)
	})
	id := tg.begin("/mcp")
	tg.g.access.token = "secret" // its holder is another principal
	for _, c := range [][2]string{{"POST", "/mcp"}, {"GET", "/mcp"}, {"DELETE", "/mcp"}} {
		if a := tg.do(c[0], c[1], call(1, "x"), "Mcp-Session-Id", id, "Authorization", "Bearer secret", "Accept", "application/json, text/event-stream"); a.status != 404 {
			t.Errorf("%s: got %+v", c[0], a)
		}
	}
	tg.g.access.token = ""
	if a := tg.do("POST", "/mcp", call(2, "x"), "Mcp-Session-Id", id); a.status != 200 {
		t.Errorf("got %+v", a)
	}
	if got := <-asked; got != "2" || len(asked) > 0 {
		t.Errorf("request %s was handled", got)
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		address           string
		public, protected bool
		ok                bool
	}{
		{"127.0.0.1:0", false, false, true},
		{"localhost:0", false, false, true},
		{"[::1]:0", false, false, true},
		{":0", false, true, false},
		{"0.0.0.0:0", false, true, false},
		{"[::]:0", false, true, false},
		{"0:0", false, true, false},
		{"[::ffff:0.0.0.0]:0", false, true, false},
		{"0.0.0.0:0", true, false, false},
		{"0.0.0.0:0", true, true, true},
		{"example.com:0", false, true, false},
		{"127.0.0.1", false, false, false},
	} {
		ln, err := Listen(c.address, c.public, c.protected, 16)
		if err == nil {
			ln.Close()
		}
		if (err == nil) != c.ok && !(c.address == "[::1]:0" && err != nil) { // not every machine has IPv6
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
