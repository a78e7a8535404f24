package localhttp

import (
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
	"syscall"

	"github.com/dynmcp/dynmcp/transports/lines"
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

// dial connects to the run at a path.
func dial(ctx context.Context, path string) (net.Conn, secret, error) {
	network, address, known, err := addressOf(ctx, path)
	var conn net.Conn
	if err == nil {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
	}
	switch {
	case IsLeftOver(err), errors.Is(err, syscall.EAGAIN): // more wait for the run than it accepts
		return nil, "", fmt.Errorf("%w: %w", ErrAbsent, err)
	case err != nil:
		return nil, "", err
	}
	if err := CheckPeer(conn); err != nil {
		conn.Close()
		return nil, "", err
	}
	return conn, known, nil
}

// send sends a request to the run at a path.
func send(ctx context.Context, path string, r *http.Request) (*http.Response, error) {
	conn, secret, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	return exchange(ctx, conn, secret, r)
}

func exchange(ctx context.Context, conn net.Conn, secret secret, r *http.Request) (*http.Response, error) {
	nonce := rand.Text()
	r.Header.Set(nonceHeader, nonce)
	r.Header.Set(proofHeader, secret.proof("client", nonce))
	resp, err := lines.Exchange(ctx, conn, r)
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, io.ErrUnexpectedEOF) || isReset(err):
		err = fmt.Errorf("%w: %w", ErrAbsent, err) // the run is ending
	case err != nil || !secret.proves(resp.Header.Get(proofHeader), "run", nonce):
		err = errForeign
	}
	if err != nil {
		conn.Close()
	}
	return resp, err
}

// Open sends a request to the run at a path, and returns the body of a successful answer.
func Open(ctx context.Context, path, method, target string) (io.ReadCloser, error) {
	const maxError = 16 << 20
	r, err := http.NewRequestWithContext(ctx, method, "http://run"+target, nil)
	if err != nil {
		return nil, err
	}
	r.Close = true
	resp, err := send(ctx, path, r)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { resp.Body.Close() })
	body := &body{resp.Body, stop}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxError))
	return nil, cmp.Or(err, errors.New(strings.TrimSpace(string(text))))
}

// A body is the body of an answer, which ends with a context.
type body struct {
	io.ReadCloser
	stop func() bool
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stop()
	return b.ReadCloser.Close()
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
	resp, err := send(ctx, path, lines.NewRequest(""))
	if err != nil {
		if errors.Is(err, errForeign) {
			err = fmt.Errorf("%s is served by another program", path)
		}
		return nil, "", err
	}
	if stream, ok := resp.Body.(net.Conn); ok {
		return stream, resp.Header.Get(versionHeader), nil
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil, "", ErrAbsent
	}
	return nil, "", fmt.Errorf("%s is served by another program (%s)", path, resp.Status)
}
