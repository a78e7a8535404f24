package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// maxStartWait is how long a caller waits for an upstream that is being started
// before it is told to call again: hosts give up after a minute.
const maxStartWait = 45 * time.Second

// acquire gets a connection for a request by how, Acquire or Load of the upstream, which
// may be the session's own. It waits no longer than a host does. A host that gave a
// progress token hears that it goes on.
func (s *session) acquire(r *host.Request, u *lazy.Upstream, how func(*lazy.Upstream, context.Context) (*upstream.Conn, func(), error)) (*upstream.Conn, func(), error) {
	u, err := s.upstreamFor(u)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := s.agg.work.ContextOf(r)
	defer cancel()
	if ctx.Err() != nil {
		return nil, nil, r.CutOff(u.Server.Name, transports.NotSent)
	}
	waiting, cancel := context.WithTimeout(ctx, maxStartWait)
	defer cancel()
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := s.agg.reportWait(waiting, r.Peer, token, "starting "+u.Server.Name)
		defer stop()
	}
	conn, release, err := how(u, waiting)
	failure := &transports.Failure{Upstream: u.Server.Name, Outcome: transports.NotSent}
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		failure = r.CutOff(u.Server.Name, transports.NotSent)
	case errors.Is(err, lazy.ErrClosed):
		failure = replaced(u.Server.Name)
	case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
		failure.Code, failure.Cause, failure.Hint = transports.CodeTimeout, errors.New("it is still starting"), "call again; the start goes on"
	default:
		return conn, release, err
	}
	return nil, nil, failure
}

// reportWait tells a host every few seconds what its request waits for. The function
// it returns ends that and waits for the end.
func (a *Aggregator) reportWait(ctx context.Context, host transports.Peer, token json.RawMessage, text string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer a.work.Recover()
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				host.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`,
					token, n, wire.Quote(text)))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
