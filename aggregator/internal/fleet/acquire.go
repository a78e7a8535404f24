package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// maxStartWait is how long a caller waits for an upstream that is being started before it is told
// to call again: hosts give up after a minute.
const maxStartWait = 45 * time.Second

// Acquire gets a connection for a request through Acquire of the upstream or of the session's own
// one, or with load through Load. It waits no longer than a host does. A host that sent a progress
// token is told about the wait. Without r, on the control plane, it waits until ctx ends.
func (f *Fleet) Acquire(ctx context.Context, s *sessions.Session, r *host.Request, u *lazy.Upstream, load bool) (*upstream.Conn, func(), error) {
	u, err := f.For(s, u)
	if err != nil {
		return nil, nil, err
	}
	acquire := u.Acquire
	if load {
		acquire = u.Load
	}
	if r == nil {
		return acquire(ctx)
	}
	if ctx.Err() != nil {
		return nil, nil, r.CutOff(u.Server.Name, transports.NotSent)
	}
	waiting, cancel := context.WithTimeout(ctx, maxStartWait)
	defer cancel()
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := f.Work.ReportWait(waiting, r.Peer, token, "starting "+u.Server.Name)
		defer stop()
	}
	conn, release, err := acquire(waiting)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		err = r.CutOff(u.Server.Name, transports.NotSent)
	case errors.Is(err, lazy.ErrClosed):
		err = replaced(u.Server.Name)
	case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
		err = &transports.Failure{Upstream: u.Server.Name, Outcome: transports.NotSent, Code: transports.CodeTimeout,
			Cause: errors.New("it is still starting"), Hint: "call again; the start goes on"}
	}
	return conn, release, err
}
