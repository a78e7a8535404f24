package replica

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/modules/cluster/internode"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// Serve serves the other replicas until stop is called. stop ends their connections.
func (r *Replica) Serve(agg *aggregator.Aggregator, g *gateway.Gateway) (stop func()) {
	r.agg.Store(agg)
	server := internode.NewServer(r.id, internode.Routes{
		Requests: g.ServePassed,
		Upstream: func(ctx context.Context, server, principal string) (func(io.ReadWriteCloser), error) {
			return r.serveUpstream(ctx, agg, server, principal)
		},
		Result: func(_ context.Context, principal, handle string) (json.RawMessage, int, bool) {
			return agg.Result(principal, handle)
		},
		Logger: r.log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		const consequence = "other replicas do not reach this one any more"
		defer r.recovered(consequence)
		if err := server.Serve(ctx, r.ln); err != nil {
			r.log.Error(consequence, "err", err)
		}
	})
	return func() {
		cancel()
		serving.Wait()
	}
}

// serveUpstream takes the lease of a server, and returns a function that serves the server to
// another replica.
func (r *Replica) serveUpstream(ctx context.Context, agg *aggregator.Aggregator, server, principal string) (func(io.ReadWriteCloser), error) {
	if _, _, known := agg.Directory().Connection(server); !known {
		return nil, fmt.Errorf("%s is not in the config of replica %s", server, r.flags.name)
	}
	lease, err := r.take(ctx, server, principal)
	if err != nil {
		return nil, err
	}
	return func(stream io.ReadWriteCloser) {
		// The server has another lease while it runs. This lease keeps it placed here between two
		// uses. It is released as soon as it is lost, even if the stream is still open.
		ended := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			select {
			case <-lease.Lost():
			case <-ended:
			}
			lease.Release()
		})
		defer watching.Wait()
		defer close(ended)
		agg.ServeReplica(ctx, stream, server, principal, aggregator.Placement{Lost: lease.Lost(), Moving: r.self.Leaving(r.self.ID())})
	}, nil
}

// Drain hands over the servers placed here to other replicas.
func (r *Replica) Drain() {
	r.log.Info("draining: other replicas take over")
	ctx, cancel := context.WithTimeout(context.Background(), handOver)
	defer cancel()
	if err := r.self.Drain(ctx); err != nil {
		r.log.Warn("ending what other replicas still use here", "err", err)
	}
}
