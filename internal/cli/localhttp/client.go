package localhttp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"time"
)

// hostPath is the path at which a host connects. It asks to upgrade the connection to hostProtocol.
const (
	hostPath     = "/mcp"
	hostProtocol = "mcp-lines"
)

// Headers of requests and answers.
const (
	versionHeader = "Dynmcp-Version" // of the run
	nonceHeader   = "Dynmcp-Nonce"
	proofHeader   = "Dynmcp-Proof"
)

// A secret is known to the programs of a user. Neither side sends it, so that another program on the port of
// an ended run learns nothing. It is empty where the system names the user of the other end.
type secret string

// proof shows that one side knows the secret.
func (s secret) proof(side, nonce string) string {
	if s == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(s))
	fmt.Fprintf(mac, "%s %s", side, nonce)
	return fmt.Sprintf("%x", mac.Sum(nil))
}

func (s secret) proves(proof, side, nonce string) bool {
	return hmac.Equal([]byte(proof), []byte(s.proof(side, nonce)))
}

// ErrAbsent means that no run serves a path, or that it is ending.
var ErrAbsent = errors.New("no dynmcp serves there")

// errForeign means that something else serves a path.
var errForeign = errors.New("it is served by another program")

// send sends a request to the run at a path. The connection must be closed.
func send(ctx context.Context, path, method, target string, header http.Header) (net.Conn, *http.Response, error) {
	conn, secret, err := dial(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	resp, err := exchange(ctx, conn, secret, method, target, header)
	if err != nil {
		conn.Close()
		return nil, nil, cmp.Or(context.Cause(ctx), err)
	}
	_ = conn.SetReadDeadline(time.Time{})
	return conn, resp, nil
}

func exchange(ctx context.Context, conn net.Conn, secret secret, method, target string, header http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://run"+target, nil)
	if err != nil {
		return nil, err
	}
	nonce := rand.Text()
	r.Header = header
	r.Header.Set(nonceHeader, nonce)
	r.Header.Set(proofHeader, secret.proof("client", nonce))
	_ = r.Write(conn) // what was answered is read first
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || isReset(err):
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err) // the run is ending
	case err != nil || !secret.proves(resp.Header.Get(proofHeader), "run", nonce):
		return nil, errForeign
	}
	return resp, nil
}

// Open sends a request to the run at a path, and returns the body of a successful answer.
func Open(ctx context.Context, path, method, target string) (io.ReadCloser, error) {
	const maxError = 16 << 20
	conn, resp, err := send(ctx, path, method, target, http.Header{"Connection": {"close"}})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	body := &body{resp.Body, conn, stop}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxError))
	return nil, cmp.Or(err, errors.New(strings.TrimSpace(string(text))))
}

// A body is the body of an answer, which closes its connection.
type body struct {
	io.ReadCloser
	conn net.Conn
	stop func() bool
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stop()
	return b.conn.Close()
}

// IsServed reports whether something serves a path.
func IsServed(ctx context.Context, path string) bool {
	conn, _, err := dial(ctx, path)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// IsLeftOver reports whether err, of a request, means that a killed run has left the path.
func IsLeftOver(err error) bool { return isRefused(err) || errors.Is(err, fs.ErrNotExist) }

// Connect connects a host to the run at a path. version is that of the run. The error is
// ErrAbsent if there is no run that takes hosts.
func Connect(ctx context.Context, path string) (_ net.Conn, version string, err error) {
	conn, resp, err := send(ctx, path, http.MethodGet, hostPath, http.Header{"Connection": {"Upgrade"}, "Upgrade": {hostProtocol}})
	if err != nil {
		if errors.Is(err, errForeign) {
			err = fmt.Errorf("%s is served by another program", path)
		}
		return nil, "", err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return conn, resp.Header.Get(versionHeader), nil
	}
	conn.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil, "", ErrAbsent
	}
	return nil, "", fmt.Errorf("%s is served by another program (%s)", path, resp.Status)
}
