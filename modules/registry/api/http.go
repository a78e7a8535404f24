package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/publicip"
)

const (
	maxRedirects = 3
	pageTime     = 20 * time.Second
	maxPage      = 8 << 20
)

// web returns an HTTP client for addresses that a registry names. Only a registry that is
// itself on this machine or in a private network may name others there: what it says is
// fetched from inside the user's network (server-side request forgery).
func web(registry *url.URL) *http.Client {
	private := isPrivate(registry.Hostname())
	dialer := &net.Dialer{Timeout: pageTime}
	if !private && !proxied() {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !publicip.Is(at.Addr().WithZone("")) {
				return fmt.Errorf("%s is not a public address", address)
			}
			return nil
		}
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, DisableKeepAlives: true,
			ResponseHeaderTimeout: pageTime, TLSHandshakeTimeout: pageTime, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			return allowed(req.URL, private)
		},
	}
}

// proxied reports whether the user has set a proxy, which resolves names itself.
func proxied() bool {
	return cmp.Or(os.Getenv("HTTPS_PROXY"), os.Getenv("https_proxy"), os.Getenv("HTTP_PROXY"), os.Getenv("http_proxy")) != ""
}

func isPrivate(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".internal") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && !publicip.Is(ip)
}

// allowed refuses addresses that are not https. For a private registry, http to this machine is
// allowed.
func allowed(u *url.URL, private bool) error {
	loopback := u.Hostname() == "localhost"
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		loopback = ip.IsLoopback()
	}
	switch {
	case u.Hostname() == "":
		return fmt.Errorf("%q names no host", u.Redacted())
	case u.User != nil:
		return errors.New("there is a user in the address")
	case u.Scheme == "https", u.Scheme == "http" && loopback && private:
		return nil
	}
	return fmt.Errorf("%s://%s is not https", u.Scheme, u.Host)
}

// get fetches an address. The body has at most limit bytes.
func get(ctx context.Context, client *http.Client, address string, limit int64, header http.Header) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the long address
		if dial, ok := errors.AsType[*net.OpError](err); ok {
			err = dial.Err // which has the address too
		}
		return nil, nil, fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("read %s: %w", req.URL.Host, err)
	case int64(len(body)) > limit:
		return nil, nil, fmt.Errorf("%s answers more than %d bytes", req.URL.Host, limit)
	}
	return resp, body, nil
}
