package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cluster"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/internode"
)

// again is after how long it is tried again to place a server, if nothing has changed.
const again = 200 * time.Millisecond

// leaseOf is the name of the lease without which a server is not run. The name of a
// server has no spaces.
func leaseOf(server, principal string) string {
	if principal == "" {
		return server
	}
	return server + " for " + principal
}

// place finds where a server runs, or is to run, and returns how it is reached: here, or
// by a stream to another replica. It tries until ctx ends, but for what only time mends.
func (r *Replica) place(ctx context.Context, server schema.Server, principal string) (*aggregator.Placement, error) {
	switch server.Placement() {
	case schema.PlaceEach:
		return &aggregator.Placement{}, nil
	case schema.PlaceOne:
		principal = ""
	}
	name := leaseOf(server.Name, principal)
	var except []string // that could not be reached
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
		if err != nil && !errors.Is(err, errNowhere) {
			last = err
		}
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, kv.ErrUnavailable), errors.Is(err, cluster.ErrClosed), r.self.Degraded() && time.Since(began) >= cluster.Reconnect:
			return nil, last // what nobody runs now is not placed
		case where.ID == "":
			except = nil
		case !held && where.ID != r.self.ID():
			except = append(except, where.ID)
			continue
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, last
		}
	}
}

// errNowhere says that there is no replica to ask.
var errNowhere = errors.New("there is no replica to run it")

// placeAt asks a replica to run a server, which may be this one.
func (r *Replica) placeAt(ctx context.Context, where cluster.Member, server, principal string) (*aggregator.Placement, error) {
	switch where.ID {
	case "":
		return nil, errNowhere
	case r.self.ID():
		lease, err := r.take(ctx, server, principal)
		if err != nil {
			return nil, err
		}
		return &aggregator.Placement{Release: lease.Release, Lost: lease.Lost(), Moving: r.self.Leaving(where.ID), Fence: r.fence}, nil
	}
	moving := r.self.Leaving(where.ID) // before it is asked: it may drain meanwhile
	opening, cancel := context.WithCancel(ctx)
	defer cancel()
	opened := make(chan struct{})
	defer close(opened)
	go func() {
		select {
		case <-moving: // one that is gone without a word is not waited for
			cancel()
		case <-opened:
		}
	}()
	stream, err := r.client.Open(opening, where.Address, server, principal)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", where.Name, err)
	}
	return &aggregator.Placement{Stream: stream, Moving: moving}, nil
}

// take takes the lease of a server for this replica, or shares the one that it has.
func (r *Replica) take(ctx context.Context, server, principal string) (*cluster.Lease, error) {
	lease, err := r.self.Take(ctx, leaseOf(server, principal))
	var held *cluster.HeldError
	switch {
	case errors.As(err, &held):
		return nil, &internode.NotHereError{Holder: held.Member.ID}
	case errors.Is(err, cluster.ErrDraining):
		return nil, internode.ErrDraining
	}
	return lease, err
}
