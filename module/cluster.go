package module

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/gateway"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// A Cluster is the flags of a verb that select a cluster.
type Cluster interface {
	// AddFlags adds the flags to a verb: with member those of a replica.
	AddFlags(cmd *cobra.Command, member bool)
	// Servers returns the addresses of the cluster as given, "" without one.
	Servers() string
	// Name returns the name of this replica. Without a cluster it may be empty.
	Name() string
	// Logins opens the logins that the replicas share, for a verb. The caller must call end.
	Logins(ctx context.Context, verb string) (logins *logins.Store, end func(), err error)
	// Open connects to the cluster; it returns nil without one. The caller must call Close.
	Open(ctx context.Context, version string, log *slog.Logger) (Replica, error)
}

// A Replica is a run of serve in a cluster.
type Replica interface {
	// FollowConfig returns the config of the cluster, and later versions.
	FollowConfig(context.Context, schema.LoadOptions) (first *schema.Files, later <-chan *schema.Files, err error)
	// Join makes the run a member, SetOptions makes its aggregator one.
	Join(context.Context) error
	SetOptions(context.Context, *aggregator.Options) error
	Logins(context.Context) (*logins.Store, error)
	Gateway(*aggregator.Aggregator) *gateway.Replicas
	// Serve serves the other replicas until stop is called, Drain gives away what runs here.
	Serve(*aggregator.Aggregator, *gateway.Gateway) (stop func())
	Drain()
	// Close leaves the cluster. All servers that were placed here must have ended.
	Close()
}

// ClusterOf returns the Cluster of the modules of a context, or one that no flag selects.
func ClusterOf(ctx context.Context) Cluster {
	for _, m := range Of(ctx) {
		if m.Cluster != nil {
			return m.Cluster()
		}
	}
	return alone{}
}

// alone is the Cluster of a program without a module that has one.
type alone struct{}

func (alone) AddFlags(*cobra.Command, bool) {}
func (alone) Servers() string               { return "" }
func (alone) Name() string                  { return "" }

func (alone) Logins(context.Context, string) (*logins.Store, func(), error) {
	return nil, func() {}, nil
}

func (alone) Open(context.Context, string, *slog.Logger) (Replica, error) { return nil, nil }
