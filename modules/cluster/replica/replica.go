// Package replica makes a run of dynmcp a replica of a cluster: it joins, places servers, serves
// the other replicas and drains.
//
// [ClusterFlags.Open] connects to the [Cluster], the shared state of the replicas. [Flags.Open]
// returns a [Replica], which follows the config of the cluster if it has no config file, and is a
// member after [Replica.Join]. Read next: place.go, then peers.go.
package replica

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/cluster/internode"
	"github.com/dynmcp/dynmcp/modules/cluster/members"
	"github.com/dynmcp/dynmcp/transports/gateway"
)

// handOver is the time that other replicas have to finish their calls in flight at servers of
// this one, when it drains. Its own hosts have the same time.
const handOver = 18 * time.Second

// drainDelay is the time for which a draining replica still serves hosts, until load balancers
// react.
const drainDelay = 5 * time.Second

// A Replica is a run that is a replica of a cluster.
type Replica struct {
	Cluster
	flags   *Flags
	version string
	ctx     context.Context // for following the config
	stop    context.CancelFunc
	work    sync.WaitGroup

	brokenConfig atomic.Bool // the current version of the config cannot be used

	// Set by Join.
	ln     net.Listener // for other replicas
	fence  *guard.Fence
	self   *members.Replica
	id     *internode.Identity
	client *internode.Client

	agg atomic.Pointer[aggregator.Aggregator] // set by Serve
}

// Open connects to the cluster. It returns nil if no cluster is named. version is the version of
// this program. The caller must call Close.
func (f *Flags) Open(ctx context.Context, version string, log *slog.Logger) (module.Replica, error) {
	if is, err := f.isMember(); !is || err != nil {
		return nil, err
	}
	shared, err := f.open(ctx, startTimeout, "dynmcp "+f.name, log)
	if err != nil {
		return nil, err
	}
	r := &Replica{flags: f, Cluster: shared, version: version}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	return r, nil
}

// Close leaves the cluster. All servers that were placed here must have ended.
func (r *Replica) Close() {
	r.stop()
	r.work.Wait()
	if r.self != nil {
		r.self.Close()
		r.client.Close()
		r.fence.Close()
	}
	if r.ln != nil {
		_ = r.ln.Close()
	}
	_ = r.Cluster.Close()
}

// Join makes the run a member of the cluster.
func (r *Replica) Join(ctx context.Context) error {
	var err error
	if r.id, err = r.flags.identity(r.Keys); err != nil {
		return err
	}
	var address string
	if r.ln, address, err = r.flags.listen(); err != nil {
		return err
	}
	if r.fence, err = guard.NewFence(); err != nil {
		return err
	}
	self, err := members.Join(ctx, members.ReplicaOptions{
		Store:   r.Store,
		Name:    r.flags.name,
		Address: address,
		Version: r.version,
		Load:    r.load,
		Extend:  r.fence.Extend,
		Logger:  r.log,
	})
	if err != nil {
		r.fence.Close()
		return err
	}
	r.self, r.client = self, internode.NewClient(r.id)
	r.log.Info("joined the cluster", "replica", r.flags.name, "id", self.ID(), "address", address)
	return nil
}

// load returns the load that this replica reports to the others.
func (r *Replica) load() (load members.Load) {
	agg := r.agg.Load()
	if agg == nil {
		return load
	}
	for _, s := range agg.Status().Sessions() {
		if !s.Replica { // hosts of another replica are counted there
			load.Sessions++
		}
	}
	for _, u := range agg.Status().Upstreams() {
		if u.State == string(lazy.Ready) && u.PID != 0 {
			load.Servers++
		}
		load.Calls += u.InFlight
	}
	return load
}

// SetOptions sets the options of the aggregator that depend on the cluster, except for logins.
func (r *Replica) SetOptions(ctx context.Context, opts *aggregator.Options) (err error) {
	if opts.Tasks, err = r.Store.Bucket(ctx, TasksBucket); err != nil {
		return err
	}
	if opts.Listings, err = r.Store.Bucket(ctx, ListingsBucket); err != nil {
		return err
	}
	opts.Cluster, opts.Keys, opts.Replica = r, r.Keys, r.self.ID()
	return nil
}

// ResultOf implements aggregator.Cluster.
func (r *Replica) ResultOf(ctx context.Context, id, principal, handle string) (result json.RawMessage, limit int, ok bool) {
	address, ok := r.self.Address(id)
	if !ok || id == r.self.ID() {
		return nil, 0, false
	}
	return r.client.Result(ctx, address, principal, handle)
}

// Gateway returns the options of a gateway in front of agg.
func (r *Replica) Gateway(agg *aggregator.Aggregator) *gateway.Replicas {
	self := r.self.ID()
	return &gateway.Replicas{
		ID:   self,
		Name: r.flags.name,
		Keys: r.Keys,
		Pass: func(id, principal string) (http.RoundTripper, bool) {
			address, ok := r.self.Address(id)
			if !ok || id == self {
				return nil, false
			}
			return r.client.Request(address, principal), true
		},
		Other: func(principal string) (http.RoundTripper, bool) {
			m, _ := r.self.Where(rand.Text(), self)
			if m.ID == "" {
				return nil, false
			}
			return r.client.Request(m.Address, principal), true
		},
		DrainDelay: drainDelay,
		OwnerOf:    agg.OwnerOf,
		Degraded:   func() bool { return r.self.Degraded() || len(r.self.State().Broken) > 0 || r.brokenConfig.Load() },
	}
}

// recovered is deferred at the root of a goroutine. It logs a panic with its consequence.
func (r *Replica) recovered(consequence string) {
	if p := recover(); p != nil {
		r.log.Error("panic, "+consequence, "panic", p, "stack", string(debug.Stack()))
	}
}
