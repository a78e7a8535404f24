package oauth

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/certs"
	"github.com/dynmcp/dynmcp/internal/publicip"
	"github.com/dynmcp/dynmcp/schema"
)

const (
	maxBody      = 1 << 20 // bytes of an answer
	maxRedirects = 3
)

// requestTime limits a request with its answer. A test shortens it.
var requestTime = 10 * time.Second

// A BlockedAddressError means that an address of a login was refused without a request.
type BlockedAddressError struct{ Address, Reason string }

func (e *BlockedAddressError) Error() string {
	if e.Reason == notPublic {
		return fmt.Sprintf("refused %s: %s", e.Address, e.Reason)
	}
	return fmt.Sprintf("refused %s: %s; %s", e.Address, e.Reason, noKey)
}

// notPublic is the only reason that a key of the entry answers.
const notPublic = `it is not a public address; if it is yours, name its network in "allow_private" of "auth"`

// A guard decides which addresses the login at one server may involve. A server and its
// authorization server choose the addresses, and dynmcp requests them from inside the user's
// network (server-side request forgery, MCP security best practices).
type guard struct {
	server  Resource
	local   bool           // the server runs on this machine
	private []netip.Prefix // private networks that are allowed
	tls     *tls.Config

	resolver *net.Resolver // nil is the system's; tests have their own
}

// newGuard returns the guard for a server. Its "auth" lists networks that the user trusts.
func newGuard(server schema.Server) (*guard, error) {
	resource, err := resourceOf(server.Address())
	if err != nil {
		return nil, err
	}
	certificates, err := certs.Config(server.TLS)
	if err != nil {
		return nil, err
	}
	host := resource.name.Hostname()
	g := &guard{server: resource, local: isLoopback(host), tls: certificates}
	if server.Auth != nil {
		for _, text := range server.Auth.AllowPrivate {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("allow_private: %q is not a network such as 10.1.0.0/16", text)
			}
			g.private = append(g.private, network.Masked())
		}
	}
	if ip, err := netip.ParseAddr(host); err == nil && !publicip.Is(ip) {
		g.private = append(g.private, netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen()))
	}
	return g, nil
}

func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// client returns an HTTP client for addresses that the guard permits. seen is called with every
// request and the body of its answer.
func (g *guard) client(seen func(req *http.Request, body []byte)) *http.Client {
	return &http.Client{
		Transport: &guarded{guard: g, seen: seen, base: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            g.dial,
			TLSClientConfig:        g.tls,
			TLSHandshakeTimeout:    requestTime,
			MaxResponseHeaderBytes: 64 << 10,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true, // a login is a few requests
		}},
		CheckRedirect: checkRedirect,
		Timeout:       requestTime,
	}
}

// checkRedirect checks the origin of a redirect; its target is checked like any address.
func checkRedirect(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case len(via) > maxRedirects:
		return &BlockedAddressError{req.URL.Host, "too many redirects"}
	case first.Method != http.MethodGet && (req.URL.Host != first.URL.Host || req.Method != first.Method):
		return &BlockedAddressError{req.URL.Host, "a redirect of a request with secrets"}
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return &BlockedAddressError{req.URL.Host, "a redirect from https to http"}
	}
	return nil
}

// check refuses an address for reasons that the address itself shows.
func (g *guard) check(u *url.URL) error {
	refuse := func(reason string) error { return &BlockedAddressError{u.Scheme + "://" + u.Host, reason} }
	host := u.Hostname()
	switch {
	case host == "":
		return refuse("it names no host")
	case u.User != nil:
		return refuse("the address contains a user")
	case u.Scheme == "http" && !(g.local && isLoopback(host)):
		return refuse("it is not https")
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("it is not https")
	case isLoopback(host) && !g.local:
		return refuse("it is on this machine, and the server is not")
	}
	if ip, err := netip.ParseAddr(host); err == nil && !g.permits(ip) {
		return refuse(notPublic)
	}
	return nil
}

// checkName refuses a private address without a name, which the SDK takes for absent, if it is not
// refused anyway.
func checkName(u *url.URL) error {
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || ip.IsLoopback() || publicip.Is(ip) {
		return nil
	}
	return &BlockedAddressError{u.Scheme + "://" + u.Host, "a private address needs a name for a login, in the DNS or the hosts file"}
}

// permits reports whether an address may be connected to.
func (g *guard) permits(ip netip.Addr) bool {
	if ip = ip.Unmap(); ip.IsLoopback() && g.local || publicip.Is(ip) {
		return true
	}
	return slices.ContainsFunc(g.private, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// dial connects to the addresses of a name. They are checked after the lookup, so that a
// second lookup cannot differ. The proxy of the environment is the user's choice and not
// checked; it looks up names itself.
func (g *guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: requestTime, Resolver: g.resolver}
	if !isProxy(address) {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			ip, err := netip.ParseAddrPort(address)
			if err != nil || !g.permits(ip.Addr().WithZone("")) {
				return &BlockedAddressError{address, notPublic}
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}

func isProxy(address string) bool {
	for _, scheme := range []string{"http", "https"} {
		// Any name that is not exempted has the same proxy.
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "proxied.invalid"}})
		if err == nil && proxy != nil && address == hostPort(proxy) {
			return true
		}
	}
	return false
}

func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme])
}

// A guarded transport checks the address of each request, including redirected ones, and
// reads the answer, whose size is limited.
type guarded struct {
	guard *guard
	base  http.RoundTripper
	seen  func(req *http.Request, body []byte)
}

func (t *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.guard.check(req.URL); err != nil {
		closeBody(req)
		return nil, err
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	resp.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case len(body) > maxBody:
		return nil, errBodyTooLong
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	t.seen(req, body)
	return resp, nil
}

var errBodyTooLong = fmt.Errorf("the answer is longer than %d bytes", maxBody)

// withoutURL returns an error of an HTTP request without the address, which may hold a secret.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}
