package aggregator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// In a cluster a server runs once, or once for each user, on one of the replicas
// (schema.Server.Placement). Options.Place says on which, each time the server is loaded:
// here, as if there were no cluster, or elsewhere, where replica.go serves it to this
// replica. Nothing but the connection differs: what is listed, filtered, renamed and cut
// is so on the replica that the host is connected to.

// A Placement says where a server runs, for one connection to it.
type Placement struct {
	// Stream leads to the replica that runs the server, whose ServeReplica is at its other
	// end; nil is that it runs here.
	Stream io.ReadWriteCloser
	// Release is called once, when nothing of the connection is left here: no process, no
	// stream. It may be nil.
	Release func()
	// Lost is closed when the server must not run here any more, or the replica that runs
	// it is gone: everything is ended at once. Nil is never.
	Lost <-chan struct{}
	// Moving is closed when the server is to run elsewhere: calls in flight may end, and
	// later ones are placed anew. Nil is never.
	Moving <-chan struct{}
	// Fence has what runs here killed when its deadline passes, also while this process is
	// stopped; nil is that nothing has.
	Fence *guard.Fence
}

const (
	principalOwner = "principal " // begins what owner says of a user
	sessionOwner   = "session "   // and of a session
)

// placed reports whether Options.Place says where an upstream runs, and for which user.
func (a *Aggregator) placed(u *lazy.Upstream) (principal string, ok bool) {
	if a.opts.Place == nil {
		return "", false
	}
	switch u.Server.Placement() {
	case schema.PlaceOne:
		return "", u.Owner == ""
	case schema.PlacePrincipal:
		return strings.CutPrefix(u.Owner, principalOwner)
	}
	return "", false
}

// maxMoves is how often in a row a load begins anew because the server moved meanwhile.
const maxMoves = 5

// connect opens the connection to an upstream, here or where it runs.
func (a *Aggregator) connect(ctx context.Context, u *lazy.Upstream, server schema.Server, opts upstream.Options) (*upstream.Conn, error) {
	principal, ok := a.placed(u)
	if !ok {
		return a.open(server, opts)
	}
	ctx, cancel := context.WithTimeout(ctx, server.LoadTimeout)
	defer cancel()
	notPlaced := func(err error) error {
		return &transports.Failure{Upstream: server.Name, Code: transports.CodeNotPlaced, Outcome: transports.NotSent, Cause: fmt.Errorf("no replica runs it: %w", err)}
	}
	gone, err := a.here.enter(ctx, server.Name+"\x00"+u.Owner)
	if err != nil {
		return nil, notPlaced(errors.New("what ran of it here has not ended yet"))
	}
	placement, err := a.opts.Place(ctx, server, principal)
	if err != nil {
		gone()
		return nil, notPlaced(err)
	}
	release := func() {
		gone()
		if placement.Release != nil {
			placement.Release()
		}
	}
	var conn *upstream.Conn
	if placement.Stream != nil {
		gone() // what runs elsewhere keeps nothing from running here
		conn = upstream.OpenReplica(server, placement.Stream, opts)
	} else {
		opts.Fence = placement.Fence
		if conn, err = a.open(server, opts); err != nil {
			release()
			return nil, err
		}
	}
	watched := a.work.Go(func() {
		defer release()
		defer conn.Close()
		select {
		case <-conn.Done():
		case <-placement.Lost:
			conn.Kill()
		case <-placement.Moving:
			u.Retire(conn)
			select {
			case <-conn.Done():
			case <-placement.Lost:
				conn.Kill()
			}
		}
		if conn.Remote() && errors.Is(conn.Err(), upstream.ErrMoved) {
			a.followMove(u)
		}
	})
	if !watched {
		conn.Close()
		release()
	}
	return conn, nil
}

// followMove loads an upstream again that runs elsewhere now, if that is not left to the
// next call: it is eager, or hosts wait for what it notifies them of.
func (a *Aggregator) followMove(u *lazy.Upstream) {
	wanted := !u.Server.Lazy() || len(a.peerOf(u).source().Subscriptions()) > 0
	if !wanted || a.ctx.Err() != nil || !a.set.Has(u) {
		return
	}
	a.work.Go(func() {
		if _, release, err := u.Acquire(a.ctx); err == nil {
			release()
		}
	})
}

// runningHere are the placed servers that run here, or have not quite ended: each runs
// once, also while one is stopped and the next started. The zero value is ready to use.
type runningHere struct {
	mu   sync.Mutex
	gone map[string]chan struct{} // closed when it has ended
}

// enter waits until nothing of a server runs here. gone says, as often as it likes, that
// nothing does any more.
func (h *runningHere) enter(ctx context.Context, server string) (gone func(), err error) {
	for {
		h.mu.Lock()
		before := h.gone[server]
		if before == nil {
			mine := make(chan struct{})
			if h.gone == nil {
				h.gone = map[string]chan struct{}{}
			}
			h.gone[server] = mine
			h.mu.Unlock()
			return sync.OnceFunc(func() {
				h.mu.Lock()
				delete(h.gone, server)
				h.mu.Unlock()
				close(mine)
			}), nil
		}
		h.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
