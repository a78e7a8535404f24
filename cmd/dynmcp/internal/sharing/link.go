package sharing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

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
