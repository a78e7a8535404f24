// Package sharing lets the hosts of one user share a run of dynmcp. The run serves a unix
// [Socket]; a [Client] relays each host's stdin and stdout to it.
//
// A client finds the socket by a name that is derived from the config and the environment
// (name.go) and starts the run if needed (start.go). If the run ends before the host does, the
// client connects to another (relay.go, session.go) and restores the state of the host there.
package sharing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Time limits for connecting.
const (
	maxConnect   = 60 * time.Second      // for starting a run and being accepted by it
	maxReturn    = 5 * time.Second       // for waiting until somebody else restarts the run of a named socket
	connectPause = 10 * time.Millisecond // between two attempts while another client starts the run
)

// A Client connects one host to a shared run.
type Client struct {
	Socket string        // "" derives it from the config and the environment
	Idle   time.Duration // idle timeout of a run that the client starts
	Level  string        // log level of such a run

	Profile string                                            // "" leaves it to the config
	EnvFile string                                            // "" if unset
	Files   func() ([]string, error)                          // returns the paths of the config files
	Load    func(ctx context.Context) (*schema.Config, error) // loads the config files

	Version string // of this program
	Log     *slog.Logger
}

// Run relays a host's streams until the host or ctx ends, or no run can serve the host.
func (c *Client) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	path, err := c.path(ctx)
	if err != nil {
		return err
	}
	var wait time.Duration
	dial := func(ctx context.Context) (*link, error) {
		l, err := c.connect(ctx, path, wait)
		if c.Socket != "" {
			wait = maxReturn
		}
		return l, err
	}
	return (&relay{dial: dial, log: c.Log}).run(ctx, in, out)
}

// path returns the path of the socket of the run.
func (c *Client) path(ctx context.Context) (path string, err error) {
	if path = c.Socket; path == "" {
		if path, err = c.sharedSocket(ctx); err != nil {
			return "", err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, CheckSocketPath(path)
}

// connect returns a connection to the run on a socket. If there is no run, it waits for another
// client to start one for the duration wait, and then starts one itself.
func (c *Client) connect(ctx context.Context, path string, wait time.Duration) (*link, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	for {
		l, err := dialSocket(ctx, path)
		if err == nil {
			if l.version != c.Version {
				c.Log.Info("the run that hosts share is of another version; it ends when no host is connected", "its", l.version, "ours", c.Version)
			}
			return l, nil
		}
		absent := []error{errAbsent, os.ErrNotExist, syscall.ECONNREFUSED, syscall.EAGAIN} // no run accepts hosts
		if !slices.ContainsFunc(absent, func(one error) bool { return errors.Is(err, one) }) {
			return nil, err
		}
		if time.Since(began) >= wait {
			switch err := c.startShared(ctx, path); {
			case err == nil:
				continue
			case !errors.Is(err, errLocked):
				return nil, err
			}
		}
		select { // another client starts the run, or the run is ending
		case <-time.After(connectPause):
		case <-ctx.Done():
			return nil, hint.With(fmt.Errorf("%s is held by a dynmcp that admits nobody", path), "see %s.log; fuser %s.lock names its process", path, path)
		}
	}
}

// A link is a connection to a run.
type link struct {
	conn    *net.UnixConn
	in      *wire.Reader // from the run
	version string       // of the run
	since   time.Time
}

// maxFromRun limits the length of a run's messages. The run's own limits are lower.
const maxFromRun = 1 << 30

// errAbsent means that the run of a socket is ending.
var errAbsent = errors.New("no dynmcp serves there")

// Connect connects to a socket of a run of the same user.
func Connect(ctx context.Context, path string) (*net.UnixConn, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("%s: not a unix socket but %T", path, c)
	}
	if err := CheckPeer(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dialSocket connects to the run on a socket, and waits until it has accepted the client.
func dialSocket(ctx context.Context, path string) (*link, error) {
	conn, err := Connect(ctx, path)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetReadDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	l := &link{conn: conn, in: wire.NewReader(conn, maxFromRun), since: time.Now()}
	m, err := l.in.Next()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		err = errAbsent // the run is ending
	case err == nil && m.Method != ready:
		err = fmt.Errorf("%s is served by another program", path)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Time{})
	l.version, _ = wire.Text(wire.Get(m.Params, "version"))
	return l, nil
}
