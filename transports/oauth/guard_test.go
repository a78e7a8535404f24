package oauth

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dynmcp/dynmcp/schema"
)

// remoteGuard returns the guard for a server on the internet.
func remoteGuard(t *testing.T, allowed ...string) *guard {
	t.Helper()
	g, err := newGuard(schema.Server{URL: "https://mcp.example.com", Auth: &schema.Auth{AllowPrivate: allowed}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// victim starts a server on this machine, and counts the changes of its connections.
func victim(t *testing.T) (port string, connections *atomic.Int32) {
	connections = new(atomic.Int32)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ConnState = func(net.Conn, http.ConnState) { connections.Add(1) }
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(server.Listener.Addr().String())
	return port, connections
}

func unseen(*http.Request, []byte) {}

// A server on the internet may name these addresses, but no connection is made to them.
func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	port, connections := victim(t)
	port = ":" + port
	client := remoteGuard(t).client(unseen)
	for _, address := range []string{
		// Not https.
		"http://169.254.169.254/latest/meta-data", "http://mcp.example.com/", "http://8.8.8.8/", "ftp://8.8.8.8/", "file:///etc/passwd", "gopher://8.8.8.8/", "//8.8.8.8/x", "javascript:alert(1)",
		// This machine, by all its names.
		"https://127.0.0.1" + port, "https://127.1.2.3" + port, "https://localhost" + port, "https://LOCALHOST" + port, "https://localhost." + port, "https://[::1]" + port, "https://[::ffff:127.0.0.1]" + port,
		"https://[::ffff:7f00:1]" + port, "https://0.0.0.0" + port, "https://[::]" + port, "https://2130706433" + port, "https://0x7f.1" + port, "https://0177.0.0.1" + port, "https://127.1" + port, "https://[::127.0.0.1]" + port,
		"https://[::1%25lo]" + port,
		// Private networks.
		"https://10.0.0.1/", "https://10.255.255.255/", "https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.0.1/", "https://[fc00::1]/", "https://[fd12:3456::1]/", "https://[::ffff:10.0.0.1]/", "https://[::ffff:192.168.1.1]/",
		// Link-local addresses, with the metadata services of clouds.
		"https://169.254.169.254/", "https://169.254.0.1/", "https://[fe80::1]/", "https://[fe80::1%25eth0]/", "https://[::ffff:169.254.169.254]/", "https://[fd00:ec2::254]/",
		// Addresses that are translated into other networks.
		"https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a00:1]/", "https://[64:ff9b:1::1]/", "https://[2002:7f00:1::1]/", "https://[2002:a00:1::]/", "https://[2001:0:7f00:1::1]/", "https://192.88.99.1/",
		// Addresses that are not on the internet.
		"https://0.1.2.3/", "https://100.64.0.1/", "https://100.127.255.255/", "https://192.0.0.8/", "https://192.0.2.1/", "https://198.18.0.1/", "https://198.51.100.1/", "https://203.0.113.1/", "https://224.0.0.1/", "https://239.1.1.1/",
		"https://240.0.0.1/", "https://255.255.255.255/", "https://[ff02::1]/", "https://[100::1]/", "https://[2001:db8::1]/", "https://[fec0::1]/", "https://[3fff::1]/", "https://[5f00::1]/",
		// Misleading addresses.
		"https://127.0.0.1.nip.io" + port, "https://mcp.example.com@127.0.0.1" + port, "https://good:word@8.8.8.8/", "https://:443/", "https:///x",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err == nil {
			var resp *http.Response
			if resp, err = client.Do(req); err == nil {
				resp.Body.Close()
			}
		}
		cancel()
		if err == nil {
			t.Errorf("%s was requested", address)
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("this machine was connected to %d times", n)
	}
}

// The address of a name is checked when it is dialled.
func TestNamesAreCheckedByWhatIsDialled(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var refused *BlockedAddressError
	conn, err := remoteGuard(t).dial(t.Context(), "tcp", net.JoinHostPort("localhost", port))
	if err == nil {
		conn.Close()
	}
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "allow_private") {
		t.Errorf("got %v", err)
	}
}

// A name that resolves to a private address when it is dialled is refused (DNS rebinding), and so
// is a redirect to this machine.
func TestNamesThatTurnOutPrivate(t *testing.T) {
	t.Parallel()
	port, connections := victim(t)
	names := newNames(t)
	g := remoteGuard(t)
	g.resolver = names.resolver()
	for _, meant := range [][]string{{"127.0.0.1"}, {"203.0.113.7", "127.0.0.1"}, {"10.0.0.1"}, {"::1"}} {
		names.mean(meant...)
		conn, err := g.dial(t.Context(), "tcp", net.JoinHostPort("rebound.example.test", port))
		if err == nil {
			conn.Close()
		}
		var refused *BlockedAddressError
		if !errors.As(err, &refused) {
			t.Errorf("%v: got %v", meant, err)
		}
	}
	if names.asked.Load() == 0 {
		t.Error("the name was not looked up")
	}

	client := g.client(unseen)
	client.Transport = redirecting{client.Transport, "https://127.0.0.1:" + port + "/"}
	resp, err := client.Get("https://mcp.example.com/.well-known/oauth-authorization-server")
	if err == nil {
		resp.Body.Close()
	}
	if refused := new(BlockedAddressError); !errors.As(err, &refused) {
		t.Errorf("a redirect to this machine: %v", err)
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("this machine was connected to %d times", n)
	}
}

// redirecting is a transport whose server on the internet redirects every request.
type redirecting struct {
	next http.RoundTripper
	to   string
}

func (t redirecting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != "mcp.example.com" {
		return t.next.RoundTrip(req)
	}
	return &http.Response{StatusCode: http.StatusFound, Header: http.Header{"Location": {t.to}}, Body: http.NoBody, Request: req}, nil
}

func TestPermittedAddresses(t *testing.T) {
	t.Parallel()
	local, err := newGuard(schema.Server{URL: "http://localhost:8080"})
	if err != nil {
		t.Fatal(err)
	}
	private, err := newGuard(schema.Server{URL: "https://10.1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		guard   *guard
		ip      string
		allowed bool
	}{
		{"the internet", remoteGuard(t), "8.8.8.8", true},
		{"the internet, new", remoteGuard(t), "2606:4700::1111", true},
		{"a network of the user's", remoteGuard(t, "10.1.2.0/24"), "10.1.2.200", true},
		{"next to that network", remoteGuard(t, "10.1.2.0/24"), "10.1.3.1", false},
		{"this machine, of a server there", local, "127.0.0.1", true},
		{"a network, of a server on this machine", local, "10.1.2.3", false},
		{"the server's own", private, "10.1.2.3", true},
		{"its neighbour", private, "10.1.2.4", false},
		{"this machine, of a server in a network", private, "127.0.0.1", false},
	} {
		if got := test.guard.permits(netip.MustParseAddr(test.ip)); got != test.allowed {
			t.Errorf("%s: %s: got %t", test.name, test.ip, got)
		}
	}
	if _, err := newGuard(schema.Server{URL: "https://x", Auth: &schema.Auth{AllowPrivate: []string{"10.0.0.1"}}}); err == nil {
		t.Error("an address was accepted as a network")
	}
}

func TestRedirectsAreChecked(t *testing.T) {
	t.Parallel()
	var target atomic.Value
	status := new(atomic.Int32)
	var reached atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/end" {
			reached.Add(1)
			return
		}
		http.Redirect(w, r, target.Load().(string), int(status.Load()))
	}))
	defer server.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	g, _ := newGuard(schema.Server{URL: server.URL})
	client := g.client(unseen)
	for _, test := range []struct {
		method, target string
		status         int
		works          bool
	}{
		{http.MethodGet, "/end", 302, true},
		{http.MethodGet, "/loop", 302, false},
		{http.MethodGet, other.URL, 302, true}, // it is local as well
		{http.MethodGet, "http://10.0.0.1/", 302, false},
		{http.MethodGet, "https://192.168.1.1/", 307, false},
		{http.MethodGet, "file:///etc/passwd", 302, false},
		{http.MethodPost, "/end", 307, true},
		{http.MethodPost, "/end", 302, false}, // the method would change
		{http.MethodPost, other.URL, 307, false},
		{http.MethodPost, other.URL, 308, false},
	} {
		target.Store(test.target)
		status.Store(int32(test.status))
		reached.Store(0)
		req, _ := http.NewRequest(test.method, server.URL+"/start", strings.NewReader("secret=x"))
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if works := err == nil && reached.Load() == 1; works != test.works || !test.works && reached.Load() > 0 {
			t.Errorf("%s to %s (%d): reached %d, %v", test.method, test.target, test.status, reached.Load(), err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := maxBody
		if r.URL.Path == "/long" {
			n++
		}
		_, _ = w.Write(make([]byte, n))
	}))
	defer server.Close()
	g, _ := newGuard(schema.Server{URL: server.URL})
	client := g.client(unseen)
	for path, want := range map[string]error{"/fits": nil, "/long": errBodyTooLong} {
		resp, err := client.Get(server.URL + path)
		if err == nil {
			_, err = discard(resp)
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// A login page is checked and re-encoded, because a program of the user's gets its address.
func TestPagesThatAreNotOpened(t *testing.T) {
	t.Parallel()
	g := remoteGuard(t)
	for _, address := range []string{
		"javascript:alert(1)", "file:///etc/passwd", "a:$(calc)?x", "http://x/$(touch x)", "--upload-pack=x", "-x", "http://x\" & calc", `\\host\share`, `https://x" & calc`,
		"https://$(calc)/", "https://`calc`/", "https://x;calc/", "https://x|calc/", "https://user@x/", "vscode://x", "ms-msdt:/id", "data:text/html,x", "", "https://", "https://127.0.0.1/", "search-ms:query=x", "https://x\n/", "mailto:x@y.z",
	} {
		if page, _, err := checkPage(g, address, "r"); err == nil {
			t.Errorf("%q was accepted as %q", address, page)
		}
	}
	page, _, err := checkPage(g, `https://auth.example.com/a(b)'$x/authorize?b=1&a=$(calc)&c="x"%26y&d=a b#frag`, "r")
	if want := `https://auth.example.com/a%28b%29%27%24x/authorize?a=%24%28calc%29&b=1&c=%22x%22%26y&d=a+b&resource=r`; err != nil || page != want {
		t.Errorf("got  %s (%v)\nwant %s", page, err, want)
	}
	if err := OpenBrowser("--help"); err == nil {
		t.Error("an option was opened")
	}
}
