package replica

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/modules/cluster/members/configs"
	"github.com/dynmcp/dynmcp/schema"
)

// FollowConfig waits for the config of the cluster, and returns it with a channel of later versions.
// ctx limits only the wait.
func (r *Replica) FollowConfig(ctx context.Context, options schema.LoadOptions) (first *schema.Files, later <-chan *schema.Files, err error) {
	defer func() { err = ExplainConfig(err) }()
	bucket, err := r.Store.Bucket(ctx, ConfigBucket)
	if err != nil {
		return nil, nil, err
	}
	versions := configs.New(bucket, r.Keys)
	switch _, err := versions.Current(ctx); {
	case errors.Is(err, configs.ErrNone):
		r.log.Warn("there is no config in the cluster yet, waiting for one: dynmcp cluster push mcp.json")
	case err != nil:
		return nil, nil, err
	}
	pushed := make(chan *schema.Files)
	r.work.Go(func() {
		defer r.recovered("the config is not followed any more")
		r.watchConfig(versions, func(v configs.Version) {
			select {
			case pushed <- schema.TextFiles(r.ctx, v.Name, []byte(v.Text), options):
			case <-r.ctx.Done():
			}
		})
	})
	select {
	case first = <-pushed:
		return first, pushed, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// watchConfig calls changed with each new version until the run ends.
func (r *Replica) watchConfig(versions *configs.ConfigStore, changed func(configs.Version)) {
	last := 0
	for r.ctx.Err() == nil {
		err := versions.Watch(r.ctx, func(v configs.Version) {
			if v.Number != last { // each watch begins with the current version
				last = v.Number
				r.log.Info("config of the cluster", "version", v.Number, "file", v.Name, "by", v.By)
				changed(v)
			}
			r.brokenConfig.Store(false)
		}, func(err error) {
			r.brokenConfig.Store(true)
			r.log.Error("config of the cluster not taken, the last one stays", "err", err)
		})
		select {
		case <-time.After(time.Second):
			r.log.Warn("config of the cluster not watched, trying again", "err", err)
		case <-r.ctx.Done():
		}
	}
}

// ExplainConfig adds a hint to an error of package configs.
func ExplainConfig(err error) error {
	switch {
	case errors.Is(err, configs.ErrNone):
		return hint.With(err, "dynmcp cluster push mcp.json makes the first version")
	case errors.Is(err, configs.ErrChanged):
		return hint.With(err, "nothing was pushed; dynmcp cluster pull prints what was, and its version")
	case errors.Is(err, configs.ErrKey):
		return hint.With(err, "name the file that the replicas have with --cluster-key")
	case errors.Is(err, records.ErrUnavailable):
		return hint.With(err, "dynmcp cluster pull shows whether it was done")
	}
	return err
}
