// Package remote decides where the servers of a cluster run, and implements the messages between the
// replica that runs a server and one that uses it.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Placement locates a server for one connection to it.
type Placement struct {
	// Stream leads to the replica that runs the server, with ServeReplica at its other end; nil
	// if it runs here.
	Stream io.ReadWriteCloser
	// Release is called once, when nothing of the connection is left here: no process, no
	// stream. It may be nil.
	Release func()
	// Lost is closed when the server must not run here any more, or the replica that runs it is
	// gone: everything is ended at once. It may be nil.
	Lost <-chan struct{}
	// Moving is closed when the server is to run elsewhere: calls in flight may end, and later
	// ones are placed again. It may be nil.
	Moving <-chan struct{}
	// Fence kills the processes here at its deadline, even while this process is stopped. It
	// may be nil.
	Fence *guard.Fence
}

// PrincipalOwner begins the owner of a single user's upstream.
const PrincipalOwner = "principal "

// MaxMoves is how many times in a row a load restarts because the server moved meanwhile.
const MaxMoves = 5

// Open opens the connection to a server that runs here: upstream.Open.
type Open func(schema.Server, upstream.ConnOptions) (*upstream.Conn, error)

// Places decides where servers run.
type Places interface {
	// Place returns where a server runs. It is called each time the server is loaded, and may
	// take as long as its load_timeout. The server runs once in the cluster or, if principal
	// is not "", once for that user.
	Place(ctx context.Context, server schema.Server, principal string) (*Placement, error)
}

// Users are those who use servers.
type Users interface {
	// Wanted reports whether a server that has moved is loaded again at once.
	Wanted(*lazy.Upstream) bool
}

// A Placer connects servers at their place.
type Placer struct {
	Places Places // nil means that everything runs here
	Work   *work.Group
	Users  Users

	here runningHere
}

// placed reports whether Place decides where an upstream runs, and for which user.
func (p *Placer) placed(u *lazy.Upstream) (principal string, ok bool) {
	if p.Places == nil {
		return "", false
	}
	switch u.Server.Placement() {
	case schema.PlaceOne:
		return "", u.Owner == ""
	case schema.PlacePrincipal:
		return strings.CutPrefix(u.Owner, PrincipalOwner)
	}
	return "", false
}

// Connect opens the connection to an upstream, here or on another replica.
func (p *Placer) Connect(ctx context.Context, u *lazy.Upstream, server schema.Server, opts upstream.ConnOptions, open Open) (*upstream.Conn, error) {
	principal, ok := p.placed(u)
	if !ok {
		return open(server, opts)
	}
	ctx, cancel := context.WithTimeout(ctx, server.LoadTimeout)
	defer cancel()
	notPlaced := func(err error) error {
		return &transports.Failure{Upstream: server.Name, Code: transports.CodeNotPlaced, Outcome: transports.NotSent, Cause: fmt.Errorf("no dynmcp runs it: %w", err)}
	}
	gone, err := p.here.enter(ctx, server.Name+"\x00"+u.Owner)
	if err != nil {
		return nil, notPlaced(errors.New("its previous process here has not ended yet"))
	}
	placement, err := p.Places.Place(ctx, server, principal)
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
		gone() // a server elsewhere does not block one here
		conn = upstream.OpenReplica(server, placement.Stream, opts)
	} else {
		opts.Fence = placement.Fence
		if conn, err = open(server, opts); err != nil {
			release()
			return nil, err
		}
	}
	watched := p.Work.Go(func() {
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
			p.followMove(u)
		}
	})
	if !watched {
		conn.Close()
		release()
	}
	return conn, nil
}

// followMove reloads an upstream that now runs elsewhere, unless the next call does so.
func (p *Placer) followMove(u *lazy.Upstream) {
	if !p.Users.Wanted(u) {
		return
	}
	p.Work.Go(func() {
		if _, release, err := u.Acquire(p.Work.Context()); err == nil {
			release()
		}
	})
}

// runningHere are the placed servers that run here, or have not quite ended: each runs only once, even
// while one is stopped and the next started. The zero value is ready to use.
type runningHere struct {
	mu   sync.Mutex
	gone map[string]chan struct{} // closed when it has ended
}

// enter waits until nothing of a server runs here. gone reports the end of the new one; it may be
// called repeatedly.
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
