// Package lines is the link from one dynmcp to another: an HTTP request whose answer turns the
// connection into a stream of JSON-RPC lines, as on stdin and stdout. Replicas of a cluster use it
// over TLS, and hosts of a shared run over its private server.
package lines

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Path is the path of everything that a dynmcp serves, and begins those of its servers.
const Path = "/mcp"

// protocol is what a request asks to upgrade the connection to.
const protocol = "mcp-lines"

// NewRequest returns the request for the lines of a server, "" for those of all.
func NewRequest(server string) *http.Request {
	at := &url.URL{Scheme: "http", Host: "dynmcp", Path: Path}
	if server != "" {
		at.Path, at.RawPath = Path+"/"+server, Path+"/"+url.PathEscape(server)
	}
	return &http.Request{Method: http.MethodGet, URL: at, Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {protocol}}}
}

// Exchange sends a request over a connection and returns the answer, whose Body must be closed. If it
// is 101, the Body is the stream, a net.Conn. ctx ends only the exchange. An error closes the
// connection.
func Exchange(ctx context.Context, conn net.Conn, r *http.Request) (*http.Response, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_ = r.Write(conn) // what was answered is read first
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, r)
	if !stop() {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
	case resp.StatusCode != http.StatusSwitchingProtocols:
		resp.Body = body{resp.Body, conn}
	case in.Buffered() > 0:
		err = errEarly
	default:
		resp.Body = conn
	}
	if err != nil {
		conn.Close()
	}
	return resp, err
}

// A body closes the connection of its answer.
type body struct {
	io.Reader
	io.Closer
}

// errEarly means that the other side sent lines before the answer was read.
var errEarly = errors.New("the other side did not wait")

// Accept answers a request for lines, with the headers of w, and returns the stream. After an error
// nothing more can be answered.
func Accept(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	if r.Header.Get("Upgrade") != protocol {
		w.Header().Set("Upgrade", protocol)
		http.Error(w, "this is for another dynmcp", http.StatusUpgradeRequired)
		return nil, errors.New("the request is not for lines")
	}
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusHTTPVersionNotSupported)
		return nil, err
	}
	answer := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: w.Header()}
	answer.Header.Set("Connection", "Upgrade")
	answer.Header.Set("Upgrade", protocol)
	_ = answer.Write(buffer) // the error is that of Flush
	if err = buffer.Flush(); err == nil && buffer.Reader.Buffered() > 0 {
		err = errEarly
	}
	if err = errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
