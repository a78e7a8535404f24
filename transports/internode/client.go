package internode

import (
	"context"
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
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/transports"
)

// A Client makes requests to other replicas, by the addresses of their listeners.
type Client struct {
	id        string
	transport *http.Transport
}

// NewClient returns a client with an identity; id is the ID of this replica.
func NewClient(identity *Identity, id string) *Client {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Client{id: id, transport: &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        identity.client(),
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

// target returns the URL of a route.
func target(address, route, rest string) *url.URL {
	return &url.URL{Scheme: "https", Host: address, Path: "/" + route + "/" + rest, RawPath: "/" + route + "/" + url.PathEscape(rest)}
}

// do sends a request to a replica. An error is a *transports.Failure, whose outcome is NotSent
// if the other side has seen nothing of the request.
func (c *Client) do(r *http.Request, principal string) (*http.Response, error) {
	r.Header.Set(headerProtocol, protocol)
	r.Header.Set(headerFrom, c.id)
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
	out.URL = &url.URL{Scheme: "https", Host: p.address, Path: "/request" + r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.URL.RawPath != "" {
		out.URL.RawPath = "/request" + r.URL.EscapedPath()
	}
	resp, err := p.client.do(&out, p.principal)
	if err == nil {
		resp.Header.Del(headerProtocol) // the host must not see it
	}
	return resp, err
}

// Open opens a stream of JSON-RPC lines to a server that the replica at an address runs, for
// a principal if the server runs once for each. ctx applies only to opening. The error is a
// *NotHereError if another replica runs the server, or ErrDraining, ErrUnsupported or a
// *transports.Failure.
func (c *Client) Open(ctx context.Context, address, server, principal string) (io.ReadWriteCloser, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	in, out := io.Pipe()
	s := &clientStream{out: out, cancel: cancel, written: make(chan struct{})}
	body := &requestBody{PipeReader: in, over: sync.OnceFunc(func() { close(s.written) })}
	r := (&http.Request{Method: http.MethodPost, URL: target(address, "upstream", server), Header: http.Header{}, Body: body, ContentLength: -1}).WithContext(life)
	resp, err := c.do(r, principal)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = refusal(resp)
	}
	if err == nil && !stop() {
		resp.Body.Close()
		err = ctx.Err()
	}
	if err != nil {
		stop()
		cancel()
		in.Close()
		return nil, err
	}
	s.in = resp.Body
	return s, nil
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
		return fmt.Errorf("%w: %s (version %s of the protocol between replicas, ours is %s)", ErrUnsupported, said, resp.Header.Get(headerProtocol), protocol)
	}
	return errors.New(said)
}

// A clientStream is the stream of an upstream, at the replica that uses it.
type clientStream struct {
	in      io.ReadCloser
	out     *io.PipeWriter
	cancel  context.CancelFunc
	written chan struct{} // closed when everything written was sent
}

func (s *clientStream) Read(p []byte) (int, error) { return readPeer(s.in, p) }

// readPeer reads what another replica sends. An error other than io.EOF is ErrLost.
func readPeer(r io.Reader, p []byte) (int, error) {
	n, err := r.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return n, err
}

func (s *clientStream) Write(p []byte) (int, error) { return s.out.Write(p) }

// Close implements io.Closer. It waits up to a second for data that was written before.
func (s *clientStream) Close() error {
	err := s.out.Close()
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-s.written:
	case <-late.C:
	}
	err = errors.Join(err, s.in.Close())
	s.cancel()
	return err
}

// A requestBody is the body of a request. The transport reads from it again when it has sent
// the previous part.
type requestBody struct {
	*io.PipeReader
	over func() // called when all was read, and after that
}

func (e *requestBody) Read(p []byte) (int, error) {
	n, err := e.PipeReader.Read(p)
	if err != nil {
		e.over()
	}
	return n, err
}

func (e *requestBody) Close() error {
	defer e.over()
	return e.PipeReader.Close()
}

// Result returns a result that the replica at an address stores for a principal, and its
// limit in tokens. ok is false if there is no such result, or no answer.
func (c *Client) Result(ctx context.Context, address, principal, handle string) (result json.RawMessage, limit int, ok bool) {
	r := (&http.Request{Method: http.MethodGet, URL: target(address, "result", handle), Header: http.Header{}}).WithContext(ctx)
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
