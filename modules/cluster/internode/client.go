package internode

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/lines"
)

// A Client makes requests to other replicas, by the addresses of their listeners.
type Client struct {
	transport *http.Transport
	lines     tls.Dialer // of connections that become streams
}

// NewClient returns a client with an identity.
func NewClient(identity *Identity) *Client {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Client{lines: tls.Dialer{NetDialer: dialer, Config: identity.client("http/1.1")}, transport: &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        identity.client("h2"),
		TLSHandshakeTimeout:    headerTimeout,
		Protocols:              &protocols,
		DisableCompression:     true, // bytes are forwarded unchanged
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream: streamBuffer,
			SendPingTimeout:           pingAfter,
			PingTimeout:               pingTimeout,
		},
	}}
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// do sends a request to a replica. An error is a *transports.Failure, whose outcome is NotSent
// if the other side has seen nothing of the request.
func (c *Client) do(r *http.Request, principal string) (*http.Response, error) {
	r.Header.Set(headerPrincipal, url.QueryEscape(principal))
	var sent atomic.Bool
	resp, err := c.transport.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { sent.Store(false) }, // also before a request that was not processed is sent again
		WroteHeaders: func() { sent.Store(true) },
	})))
	if err == nil {
		return resp, nil
	}
	failure := &transports.Failure{Upstream: "replica " + r.URL.Host, Code: transports.CodeUnreachable, Outcome: transports.NotSent, Cause: err}
	if sent.Load() {
		failure.Outcome = transports.Unknown
	}
	return nil, failure
}

// Request returns a transport that forwards the requests of a host, made as a principal, to
// the replica at an address.
func (c *Client) Request(address, principal string) http.RoundTripper {
	return requestTransport{c, address, principal}
}

type requestTransport struct {
	client             *Client
	address, principal string
}

func (p requestTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := *r // RoundTrip must not change r
	out.Header = r.Header.Clone()
	out.Host = ""
	out.URL = &url.URL{Scheme: "https", Host: p.address, Path: "/request" + r.URL.Path, RawPath: "/request" + r.URL.EscapedPath(), RawQuery: r.URL.RawQuery}
	return p.client.do(&out, p.principal)
}

// Open opens a stream of JSON-RPC lines to a server that the replica at an address runs, for
// a principal if the server runs once for each. ctx applies only to opening. The error is a
// *NotHereError if another replica runs the server, and wraps ErrDraining or ErrUnsupported.
func (c *Client) Open(ctx context.Context, address, server, principal string) (io.ReadWriteCloser, error) {
	conn, err := c.lines.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	r := lines.NewRequest(server)
	r.Header.Set(headerPrincipal, url.QueryEscape(principal))
	resp, err := lines.Exchange(ctx, conn, r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusal(resp)
	}
	return newStream(resp.Body.(net.Conn)), nil
}

// refusal returns the error in a response, and closes its body.
func refusal(resp *http.Response) error {
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // an error shortens the message
	said := strings.TrimSpace(transports.Printable(text, 500))
	switch holder := resp.Header.Get(headerHolder); {
	case holder != "":
		return &NotHereError{Holder: holder}
	case resp.StatusCode == http.StatusServiceUnavailable:
		return ErrDraining
	case resp.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: %s", ErrUnsupported, said)
	}
	return errors.New(said)
}

// Result returns a result that the replica at an address stores for a principal, and its
// limit in tokens. ok is false if there is no such result, or no answer.
func (c *Client) Result(ctx context.Context, address, principal, handle string) (result json.RawMessage, limit int, ok bool) {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: address, Path: "/result/" + handle, RawPath: "/result/" + url.PathEscape(handle)}, Header: http.Header{}}).WithContext(ctx)
	resp, err := c.do(r, principal)
	if err != nil {
		return nil, 0, false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, false
	}
	result, err = io.ReadAll(io.LimitReader(resp.Body, maxResult+1))
	if err != nil || len(result) > maxResult {
		return nil, 0, false
	}
	limit, _ = strconv.Atoi(resp.Header.Get(headerLimit)) // 0 if unset
	return result, limit, true
}
