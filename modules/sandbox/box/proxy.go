//go:build linux || darwin

package box

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/publicip"
)

// A proxy lets one server reach the hosts that its policy names, and no others. It is an HTTP
// proxy (RFC 9110, sections 7.3.2 and 9.3.6) on this machine, protected by a password.
type proxy struct {
	rules    []rule
	denied   func(why string) // called for every refused connection
	resolver interface {
		LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	}
	trace     *Trace // may be nil; one that learns allows everything
	password  string
	door      *door
	halfOpen  time.Duration
	server    *http.Server
	transport *http.Transport // of requests without a tunnel
	served    sync.WaitGroup
	bytes     atomic.Int64 // in both directions

	mu      sync.Mutex
	closed  bool
	tunnels map[net.Conn]struct{} // both ends of each
	open    sync.WaitGroup
}

// newProxy starts a proxy for these hosts. denied must not block. trace may be nil.
func newProxy(hosts []string, denied func(why string), trace *Trace, logger *slog.Logger) (*proxy, error) {
	p := &proxy{denied: denied, trace: trace, resolver: net.DefaultResolver, password: rand.Text(), halfOpen: halfOpen, tunnels: map[net.Conn]struct{}{}}
	for _, host := range hosts {
		r, err := parseRule(host)
		if err != nil {
			return nil, err
		}
		p.rules = append(p.rules, r)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.door = &door{Listener: listener}
	p.transport = &http.Transport{
		DialContext:  func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
		MaxIdleConns: maxConnections, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
	}
	errorLog := slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	p.server = &http.Server{
		Handler: p.handler(errorLog), ErrorLog: errorLog, ConnContext: withVisitor,
		MaxHeaderBytes: maxHeader, ReadHeaderTimeout: passwordWithin, IdleTimeout: time.Minute,
	}
	p.served.Go(func() { _ = p.server.Serve(p.door) }) // until Close
	return p, nil
}

// Port returns the port that the proxy listens on.
func (p *proxy) Port() uint16 { return p.door.Addr().(*net.TCPAddr).AddrPort().Port() }

// address returns the address of the proxy, or "".
func (p *proxy) address() string {
	if p == nil {
		return ""
	}
	return p.door.Addr().String()
}

// Bytes returns the number of bytes that passed, both ways.
func (p *proxy) Bytes() int64 { return p.bytes.Load() }

// Environment returns the variables by which programs find the proxy.
func (p *proxy) Environment() []string {
	address := (&url.URL{Scheme: "http", User: url.UserPassword("dynmcp", p.password), Host: p.door.Addr().String()}).String()
	env := []string{"NODE_USE_ENV_PROXY=1", "NO_PROXY=", "no_proxy="}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"="+address, strings.ToLower(name)+"="+address)
	}
	return env
}

// Close ends the proxy and its connections.
func (p *proxy) Close() {
	_ = p.server.Close()
	p.served.Wait()
	p.transport.CloseIdleConnections()
	p.mu.Lock()
	p.closed = true
	for end := range p.tunnels {
		end.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
}

// hold registers a tunnel: Close closes its ends and waits for leave. ok is false after Close.
func (p *proxy) hold(ends ...net.Conn) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false
	}
	p.open.Add(1)
	for _, end := range ends {
		p.tunnels[end] = struct{}{}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, end := range ends {
			delete(p.tunnels, end)
		}
		p.open.Done()
	}, true
}

// A deniedError says why a connection was refused, and which host a policy must name to allow it.
type deniedError struct{ why, host string }

func (e *deniedError) Error() string { return e.why }

func (p *proxy) handler(errorLog *log.Logger) http.Handler {
	plain := &httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {},
		FlushInterval: -1,
		Transport:     p.transport,
		ErrorLog:      errorLog,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { answer(w, err) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		if subtle.ConstantTimeCompare([]byte(password), []byte(p.password)) != 1 {
			w.Header().Set("Proxy-Authenticate", `Basic realm="dynmcp"`)
			w.Header().Set("Connection", "close")
			http.Error(w, "this proxy is one server's", http.StatusProxyAuthRequired)
			return
		}
		r.Header.Del("Proxy-Authorization")
		if !p.admit(w, r) {
			return
		}
		switch {
		case r.Method == http.MethodConnect:
			p.connect(w, r)
		case r.URL.Scheme == "http" && r.URL.Host != "":
			plain.ServeHTTP(w, r)
		default:
			http.Error(w, "a proxy takes CONNECT, and URLs that begin with http://", http.StatusBadRequest)
		}
	})
}

// answer sends the error of a failed connection.
func answer(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if _, ok := errors.AsType[*deniedError](err); ok {
		status = http.StatusForbidden
	}
	http.Error(w, err.Error(), status)
}

// connect makes a tunnel.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	there, err := p.dial(r.Context(), r.Host)
	if err != nil {
		answer(w, err)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		answer(w, err)
		return
	}
	defer here.Close()
	leave, ok := p.hold(here, there)
	if !ok {
		return
	}
	defer leave()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	p.relay(here, buffered, there)
}

// dial connects to a host and port, if a rule allows it.
func (p *proxy) dial(ctx context.Context, address string) (*countedConn, error) {
	addresses, port, err := p.allowed(ctx, address)
	if err != nil {
		return nil, p.note(err)
	}
	dialer := net.Dialer{Timeout: connectWithin}
	for _, ip := range addresses {
		conn, dialErr := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(ip, port).String())
		switch {
		case dialErr != nil:
			err = errors.Join(err, dialErr)
		case scarce(conn):
			return nil, errors.Join(fmt.Errorf("%s: few file descriptors are left", address), conn.Close())
		case publicip.Is(ip) && leadsBack(conn) && !p.learns() && !p.hasAddress(ip, port):
			conn.Close()
			return nil, p.note(denyPrivate(address, []netip.Addr{ip}, port))
		default:
			return &countedConn{Conn: conn, bytes: &p.bytes}, nil
		}
	}
	return nil, err
}

// note reports the error of a connection if it was refused, and returns it.
func (p *proxy) note(err error) error {
	if denial, ok := errors.AsType[*deniedError](err); ok {
		p.denied(denial.why)
		if p.trace != nil {
			p.trace.noteIn(&p.trace.denied, denial.host)
		}
	}
	return err
}

// denyPrivate returns the error for a name with these addresses.
func denyPrivate(host string, found []netip.Addr, port uint16) error {
	why := fmt.Sprintf("the sandbox does not allow %s: it is %v, an address of a private network or of this machine, which its network does not name", host, found)
	return &deniedError{why, netip.AddrPortFrom(found[0].Unmap(), port).String()}
}

func (p *proxy) learns() bool { return p.trace != nil && p.trace.Learn }

// allowed returns the addresses of a host that a server may connect to. A name allows only
// public addresses: private ones must be listed as addresses. Otherwise a public DNS name
// that resolves to a private address would reach it.
func (p *proxy) allowed(ctx context.Context, address string) (all []netip.Addr, port uint16, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		host, portText = address, "80"
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, 0, fmt.Errorf("%q: no port", address)
	}
	port, host = uint16(n), strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	named := net.JoinHostPort(host, portText)
	if p.trace != nil {
		p.trace.noteIn(&p.trace.hosts, named)
		if p.learns() {
			all, err = p.resolver.LookupNetIP(ctx, "ip", host)
			return all, port, err
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if !p.hasAddress(ip.WithZone("").Unmap(), port) {
			return nil, 0, &deniedError{fmt.Sprintf("the sandbox does not allow %s: its network names no such address", address), address}
		}
		return []netip.Addr{ip}, port, nil
	}
	if !slices.ContainsFunc(p.rules, func(r rule) bool { return r.hasName(host) && r.hasPort(port) }) {
		return nil, 0, &deniedError{fmt.Sprintf("the sandbox does not allow %s: its network does not name it", named), named}
	}
	found, err := p.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, 0, err
	}
	ours, err := machine()
	if err != nil {
		return nil, 0, err
	}
	for _, ip := range found {
		if ip = ip.Unmap(); isElsewhere(ip, ours) || p.hasAddress(ip, port) || host == "localhost" && ip.IsLoopback() {
			all = append(all, ip)
		}
	}
	if len(all) == 0 {
		return nil, 0, denyPrivate(host, found, port)
	}
	return all, port, nil
}

func (p *proxy) hasAddress(ip netip.Addr, port uint16) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool { return r.hasAddress(ip) && r.hasPort(port) })
}
