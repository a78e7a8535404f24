package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cluster"
	"github.com/dynmcp/dynmcp/internal/cluster/configs"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/internode"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// handOver is how long, at the end, the other replicas may take to finish what they have
// in flight at servers that run here. It is what the hosts of this one may take.
const handOver = 18 * time.Second

// lameDuck is how long hosts are served on at the end, in which balancers learn of it.
const lameDuck = 5 * time.Second

// A clusterRun is a run as one of the replicas of a cluster. It begins with what they
// share, and is a member when it has joined.
type clusterRun struct {
	flags *replicaFlags
	clusterState
	ctx  context.Context // of what follows the config
	stop context.CancelFunc
	work sync.WaitGroup

	brokenConfig atomic.Bool // the current one cannot be opened

	// After join.
	ln     net.Listener // for other replicas
	fence  *guard.Fence
	self   *cluster.Replica
	id     *internode.Identity
	client *internode.Client
	agg    atomic.Pointer[aggregator.Aggregator] // nil before serve
}

// reach reaches the cluster, or returns nil where the flags name none. close must be called.
func (f *replicaFlags) reach(ctx context.Context, log *slog.Logger) (*clusterRun, error) {
	if is, err := f.isMember(); !is || err != nil {
		return nil, err
	}
	state, err := f.open(ctx, startPatience, "dynmcp "+f.name, log)
	if err != nil {
		return nil, err
	}
	c := &clusterRun{flags: f, clusterState: state}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	return c, nil
}

// close leaves the cluster. Nothing may run any more that was placed here.
func (c *clusterRun) close() {
	c.stop()
	c.work.Wait()
	if c.self != nil {
		c.self.Close()
		c.client.Close()
		c.fence.Close()
	}
	if c.ln != nil {
		_ = c.ln.Close()
	}
	_ = c.store.Close()
}

// followConfig waits for the config of the cluster, which from has then, and has from
// told of each that takes its place. It returns without one when ctx ends.
func (c *clusterRun) followConfig(ctx context.Context, from *configFlags) error {
	bucket, err := c.store.Bucket(ctx, configBucket)
	if err != nil {
		return err
	}
	versions := configs.New(bucket, c.keys)
	switch _, err := versions.Current(ctx); {
	case errors.Is(err, configs.ErrNone):
		c.log.Warn("there is no config in the cluster yet, waiting for one: dynmcp cluster push mcp.json")
	case err != nil:
		return configError(err)
	}
	pushed := make(chan *schema.Files)
	from.pushed = pushed
	c.work.Go(func() {
		defer c.recovered("the config is not followed any more")
		c.watchConfig(versions, func(v configs.Version) {
			select {
			case pushed <- schema.TextFiles(c.ctx, v.Name, []byte(v.Text), from.options()):
			case <-c.ctx.Done():
			}
		})
	})
	select {
	case from.read = <-pushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchConfig calls changed with each version that becomes current, until the run ends.
func (c *clusterRun) watchConfig(versions *configs.Store, changed func(configs.Version)) {
	last := 0
	for c.ctx.Err() == nil {
		err := versions.Watch(c.ctx, func(v configs.Version) {
			if v.Number != last { // else the watch has begun anew
				last = v.Number
				c.log.Info("config of the cluster", "version", v.Number, "file", v.Name, "by", v.By)
				changed(v)
			}
			c.brokenConfig.Store(false)
		}, func(err error) {
			c.brokenConfig.Store(true)
			c.log.Error("config of the cluster not taken, the last one stays", "err", err)
		})
		select {
		case <-time.After(time.Second):
			c.log.Warn("config of the cluster not watched, trying again", "err", err)
		case <-c.ctx.Done():
		}
	}
}

func (c *clusterRun) recovered(so string) {
	if p := recover(); p != nil {
		c.log.Error("panic, "+so, "panic", p, "stack", string(debug.Stack()))
	}
}

// join makes the run a member.
func (c *clusterRun) join(ctx context.Context) error {
	var err error
	if c.id, err = c.flags.identity(c.keys); err != nil {
		return err
	}
	var address string
	if c.ln, address, err = c.flags.listen(); err != nil {
		return err
	}
	if c.fence, err = guard.NewFence(); err != nil {
		return err
	}
	joined := make(chan struct{})
	self, err := cluster.Join(ctx, cluster.Options{
		Store:   c.store,
		Name:    c.flags.name,
		Address: address,
		Version: version,
		Load:    c.load,
		Extend:  c.fence.Extend,
		Ask: func(ctx context.Context, address string, q cluster.Question) error {
			select {
			case <-joined:
			case <-ctx.Done():
				return ctx.Err()
			}
			question, err := json.Marshal(q)
			if err != nil {
				return err
			}
			return c.client.Ask(ctx, address, question)
		},
		Logger: c.log,
	})
	if err != nil {
		c.fence.Close()
		return err
	}
	c.self, c.client = self, internode.NewClient(c.id, self.ID())
	close(joined)
	c.log.Info("joined the cluster", "replica", c.flags.name, "id", self.ID(), "address", address)
	return nil
}

// load is what the other replicas are told of how much there is to do here.
func (c *clusterRun) load() (load cluster.Load) {
	agg := c.agg.Load()
	if agg == nil {
		return load
	}
	for _, s := range agg.Sessions() {
		if !s.Replica { // whose hosts are counted there
			load.Sessions++
		}
	}
	for _, u := range agg.Upstreams() {
		if u.State == lazy.Ready && u.PID != 0 {
			load.Servers++
		}
		load.Calls += u.InFlight
	}
	return load
}

// options are those of the aggregator of a replica.
func (c *clusterRun) options(ctx context.Context, opts *aggregator.Options) error {
	tasks, err := c.store.Bucket(ctx, tasksBucket)
	if err != nil {
		return err
	}
	if opts.Listings, err = c.store.Bucket(ctx, listingsBucket); err != nil {
		return err
	}
	opts.Place, opts.Keys, opts.Replica, opts.Tasks = c.place, c.keys, c.self.ID(), tasks
	logins, err := c.logins(ctx)
	if err != nil {
		return err
	}
	open := func() (*oauth.Store, error) { return logins, nil }
	opts.Login, opts.LogIn = loginsOf(open, c.log), offeredLogin(open, c.log)
	opts.ResultOf = func(ctx context.Context, id, principal, handle string) (json.RawMessage, int, bool) {
		address, ok := c.self.Address(id)
		if !ok || id == c.self.ID() {
			return nil, 0, false
		}
		return c.client.Result(ctx, address, principal, handle)
	}
	return nil
}

// Buckets of the shared state.
const (
	tasksBucket    = "tasks"   // whose the tasks are that servers have made
	listingsBucket = "catalog" // what servers list
)

// replicas is what a gateway knows of the others.
func (c *clusterRun) replicas(agg *aggregator.Aggregator) *gateway.Replicas {
	self := c.self.ID()
	return &gateway.Replicas{
		ID:   self,
		Name: c.flags.name,
		Keys: c.keys,
		Pass: func(id, principal string) (http.RoundTripper, bool) {
			address, ok := c.self.Address(id)
			if !ok || id == self {
				return nil, false
			}
			return c.client.Request(address, principal), true
		},
		Other: func(principal string) (http.RoundTripper, bool) {
			m, _ := c.self.Where(rand.Text(), self)
			if m.ID == "" {
				return nil, false
			}
			return c.client.Request(m.Address, principal), true
		},
		LameDuck: lameDuck,
		OwnerOf:  agg.OwnerOf,
		Degraded: func() bool { return c.self.Degraded() || len(c.self.Broken()) > 0 || c.brokenConfig.Load() },
	}
}

// serve serves the other replicas until stop is called, which ends what they have here.
func (c *clusterRun) serve(agg *aggregator.Aggregator, g *gateway.Gateway) (stop func()) {
	c.agg.Store(agg)
	server := internode.NewServer(c.id, internode.Options{
		Requests: g.ServePassed,
		Upstream: func(ctx context.Context, server, principal, from string) (func(io.ReadWriteCloser), error) {
			if _, _, known := agg.Connection(server); !known {
				return nil, fmt.Errorf("%s is not in the config of replica %s", server, c.flags.name)
			}
			lease, err := c.take(ctx, server, principal)
			if err != nil {
				return nil, err
			}
			return func(stream io.ReadWriteCloser) {
				// What runs has a lease of its own. This one keeps it here between two uses;
				// once it is lost nobody waits for the other end of the stream.
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
				agg.ServeReplica(ctx, stream, server, principal, aggregator.Placement{Lost: lease.Lost(), Moving: c.self.Leaving(c.self.ID())})
			}, nil
		},
		Result: func(_ context.Context, principal, handle string) (json.RawMessage, int, bool) {
			return agg.Result(principal, handle)
		},
		Ask: func(question json.RawMessage) error {
			var q cluster.Question
			if err := json.Unmarshal(question, &q); err != nil {
				return err
			}
			return c.self.Answer(q)
		},
		Leaving: c.self.Leaving(c.self.ID()),
		Logger:  c.log,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		defer c.recovered("other replicas do not reach this one any more")
		if err := server.Serve(ctx, c.ln); err != nil {
			c.log.Error("other replicas do not reach this one any more", "err", err)
		}
	})
	return func() {
		cancel()
		serving.Wait()
	}
}

// drain hands over what was placed here.
func (c *clusterRun) drain() {
	c.log.Info("draining: other replicas take over")
	ctx, cancel := context.WithTimeout(context.Background(), handOver)
	defer cancel()
	if err := c.self.Drain(ctx); err != nil {
		c.log.Warn("ending what other replicas still use here", "err", err)
	}
}
