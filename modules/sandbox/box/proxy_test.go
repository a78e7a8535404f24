//go:build linux || darwin

package box

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// patience bounds the wait for what must happen.
const patience = time.Minute

// names is a resolver: names and their addresses.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if n[host] == "" {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(n[host])}, nil
}

func TestRules(t *testing.T) {
	p := &proxy{resolver: names{
		"api.example.com": "93.184.215.14", "a.sub.example.org": "93.184.215.15", "example.org": "93.184.215.15",
		"rebound.example.com": "127.0.0.1", "inside.example.com": "10.1.2.3", "mapped.example.com": "::ffff:169.254.169.254", "localhost": "127.0.0.1",
	}}
	for _, host := range []string{"api.example.com", "*.example.org:443", "rebound.example.com", "inside.example.com:5432", "mapped.example.com", "10.1.0.0/16:5432", "192.0.2.7:8443", "localhost:6000"} {
		r, err := parseRule(host)
		if err != nil {
			t.Fatal(err)
		}
		p.rules = append(p.rules, r)
	}
	for address, want := range map[string]bool{
		"api.example.com:443": true, "API.example.com.:80": true, "api.example.com:8080": false, "evil.example.com:443": false, "xapi.example.com:443": false,
		"a.sub.example.org:443": true, "a.sub.example.org:80": false, "example.org:443": false,
		"rebound.example.com:443": false, "mapped.example.com:80": false, // an address of this machine, and the cloud's metadata
		"inside.example.com:5432": true, "10.1.9.9:5432": true, "10.2.9.9:5432": false, "10.1.9.9:443": false,
		"192.0.2.7:8443": true, "192.0.2.8:8443": false, "[::ffff:192.0.2.7]:8443": true, "127.0.0.1:80": false, "[::1]:80": false, "169.254.169.254:80": false,
		"localhost:6000": true, "localhost:6001": false, "0x7f.1:80": false, "2130706433:80": false,
	} {
		_, _, err := p.allowed(t.Context(), address)
		denial, refused := errors.AsType[*deniedError](err)
		if allowed := err == nil; allowed != want || !want && (!refused || !strings.Contains(denial.why, "the sandbox does not allow")) {
			t.Errorf("%s: got %v, allowed %t is wanted", address, err, want)
		}
	}
	for _, host := range []string{"", "*", "*.", "http://example.com", "a b", "example.com:0", "example.com:x", "user@example.com", "ex*mple.com"} {
		if err := CheckHost(host); err == nil {
			t.Errorf("%q is accepted as a host", host)
		}
	}
}

// open starts a proxy for hosts. It sends the reasons of its refusals to refused.
func open(t *testing.T, hosts ...string) (p *proxy, refused chan string) {
	t.Helper()
	refused = make(chan string, 10)
	p, err := newProxy(hosts, func(why string) { refused <- why }, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, refused
}

// through returns a client that uses the proxy.
func through(t *testing.T, p *proxy) *http.Client {
	t.Helper()
	var address string
	for _, entry := range p.Environment() {
		if value, ok := strings.CutPrefix(entry, "HTTPS_PROXY="); ok {
			address = value
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(u)}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestProxy(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("the proxy's password is passed on")
		}
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
			return
		}
		fmt.Fprint(w, "it is here")
	}))
	defer there.Close()
	secure := httptest.NewTLSServer(there.Config.Handler)
	defer secure.Close()
	p, refused := open(t, strings.TrimPrefix(there.URL, "http://"), strings.TrimPrefix(secure.URL, "https://"))
	client := through(t, p)
	client.Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	for _, address := range []string{there.URL, secure.URL} {
		resp, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(text) != "it is here" {
			t.Errorf("%s: got %q", address, text)
		}
	}
	if p.Bytes() < int64(2*len("it is here")) {
		t.Errorf("%d bytes were counted", p.Bytes())
	}
	// The client follows a redirect itself, and the proxy refuses that request.
	resp, err := client.Get(there.URL + "/away")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(<-refused, " 127.0.0.1:1: its network names") {
		t.Errorf("got %s", resp.Status)
	}
	if _, err := client.Get("https://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("CONNECT to another port: got %v", err)
	}
	if why := <-refused; !strings.Contains(why, " 127.0.0.1:1: its network names") {
		t.Errorf("refused: %s", why)
	}
}

// Another program of this machine cannot use the proxy.
func TestProxyIsOneServers(t *testing.T) {
	p, _ := open(t, "127.0.0.1:1")
	for _, request := range []string{
		"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
		"GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nProxy-Authorization: Basic ZHlubWNwOg==\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", p.door.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusProxyAuthRequired {
			t.Errorf("got %s", resp.Status)
		}
		conn.Close()
	}
}

// A response that breaks off is logged like everything else, and not printed to stderr.
func TestTheProxyLogs(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "abc")
	}))
	defer there.Close()
	lines := make(chan string, 10)
	output := writerFunc(func(line []byte) (int, error) { lines <- string(line); return len(line), nil })
	log.SetOutput(output)
	defer log.SetOutput(os.Stderr)
	p, err := newProxy([]string{strings.TrimPrefix(there.URL, "http://")}, func(string) {}, nil, slog.New(slog.NewTextHandler(output, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	resp, err := through(t, p).Get(there.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got := <-lines; !strings.Contains(got, "level=DEBUG") {
		t.Errorf("got %q, want a line of the log", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Close ends the connections that are kept for further requests.
func TestCloseEndsIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, _ := open(t, l.Addr().String())
	client, answered := through(t, p), make(chan error, 1)
	go func() {
		resp, err := client.Get("http://" + l.Addr().String())
		if err == nil {
			err = resp.Body.Close()
		}
		answered <- err
	}()
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if _, err := http.ReadRequest(bufio.NewReader(there)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	p.Close()
	_ = there.SetReadDeadline(time.Now().Add(patience))
	if _, err := there.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is open: %v", err)
	}
}

// Close ends the tunnels.
func TestCloseEndsTunnels(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, _ := open(t, l.Addr().String())
	conn, err := net.Dial("tcp", p.door.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	auth := (&http.Request{Header: http.Header{}})
	auth.SetBasicAuth("dynmcp", p.password)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: %s\r\n\r\n", l.Addr(), auth.Header.Get("Authorization"))
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %v, %v", resp, err)
	}
	p.Close()
	if _, err := there.Read(make([]byte, 1)); err == nil {
		t.Error("the tunnel is open")
	}
}
