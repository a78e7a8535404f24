package replica

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/modules/cluster/internode"
	"github.com/dynmcp/dynmcp/modules/cluster/members"
	"github.com/dynmcp/dynmcp/schema"
)

// retryInterval is the pause between two attempts to place a server.
const retryInterval = 200 * time.Millisecond

// leaseName returns the name of the lease of a server. Names of servers have no spaces.
func leaseName(server, principal string) string {
	if principal == "" {
		return server
	}
	return server + " for " + principal
}

// Place implements aggregator.Cluster: it finds the replica that runs a server or will run it. The
// placement is a lease of this replica, or a stream to another one. Place retries until ctx ends,
// and fails at once if the store cannot be reached.
func (r *Replica) Place(ctx context.Context, server schema.Server, principal string) (*aggregator.Placement, error) {
	switch server.Placement() {
	case schema.PlaceEach:
		return &aggregator.Placement{}, nil
	case schema.PlaceOne:
		principal = ""
	}
	name := leaseName(server.Name, principal)
	var except []string // replicas that could not be reached
	last := errors.New("all replicas are about to end")
	began := time.Now()
	for {
		where, held := r.self.Where(name, except...)
		p, err := r.placeAt(ctx, where, server.Name, principal)
		if elsewhere, ok := errors.AsType[*internode.NotHereError](err); ok {
			if m, ok := r.self.Member(elsewhere.Holder); ok {
				where, held = m, true
				p, err = r.placeAt(ctx, m, server.Name, principal)
			}
		}
		if err != nil && !errors.Is(err, errNoReplica) {
			last = err
		}
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, records.ErrUnavailable), errors.Is(err, members.ErrClosed), r.self.Degraded() && time.Since(began) >= members.Reconnect:
			return nil, last // without the store, no server can be placed
		case where.ID == "":
			except = nil
		case !held && where.ID != r.self.ID():
			except = append(except, where.ID)
			continue
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return nil, last
		}
	}
}

// errNoReplica means that no replica can run a server.
var errNoReplica = errors.New("there is no replica to run it")

// placeAt places a server at the replica where, which may be this one.
func (r *Replica) placeAt(ctx context.Context, where members.Member, server, principal string) (*aggregator.Placement, error) {
	switch where.ID {
	case "":
		return nil, errNoReplica
	case r.self.ID():
		lease, err := r.take(ctx, server, principal)
		if err != nil {
			return nil, err
		}
		return &aggregator.Placement{Release: lease.Release, Lost: lease.Lost(), Moving: r.self.Leaving(where.ID), Fence: r.fence}, nil
	}
	moving := r.self.Leaving(where.ID)        // before the request, because the replica may start to drain
	opening, stop := untilClosed(ctx, moving) // ends the wait for a dead replica
	defer stop()
	stream, err := r.client.Open(opening, where.Address, server, principal)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", where.Name, err)
	}
	return &aggregator.Placement{Stream: stream, Moving: moving}, nil
}

// untilClosed returns a context that ends with ctx or when closed is closed. stop releases it.
func untilClosed(ctx context.Context, closed <-chan struct{}) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(); watching.Wait() }
}

// take takes the lease of a server for this replica, or shares the lease that it has already.
func (r *Replica) take(ctx context.Context, server, principal string) (*members.Lease, error) {
	lease, err := r.self.Take(ctx, leaseName(server, principal))
	var held *members.HeldError
	switch {
	case errors.As(err, &held):
		return nil, &internode.NotHereError{Holder: held.Member.ID}
	case errors.Is(err, members.ErrDraining):
		return nil, internode.ErrDraining
	}
	return lease, err
}
