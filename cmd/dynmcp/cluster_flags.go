package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/kv/natskv"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// How long it is tried to reach NATS: by a replica that starts, which may be faster than
// NATS, and by a verb.
const (
	startPatience = 30 * time.Second
	verbPatience  = 10 * time.Second
)

// clusterFlags say which cluster is meant.
type clusterFlags struct {
	servers string // of NATS, with commas between them
	creds   string
	ca      string
	key     string // the file
}

// Variables that stand for the flags.
const (
	clusterVariable      = "DYNMCP_CLUSTER"
	clusterCredsVariable = "DYNMCP_CLUSTER_CREDS"
	clusterCAVariable    = "DYNMCP_CLUSTER_CA"
	clusterKeyVariable   = "DYNMCP_CLUSTER_KEY"
)

func (f *clusterFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.servers, "cluster", "", "the `addresses` of the cluster's NATS servers, with commas between them (default $"+clusterVariable+")")
	cmd.Flags().StringVar(&f.creds, "cluster-creds", "", "the `file` with the credentials for NATS (default $"+clusterCredsVariable+")")
	cmd.Flags().StringVar(&f.ca, "cluster-ca", "", "the `file` with the authorities of the NATS servers' certificates (PEM; default $"+clusterCAVariable+", or the system's)")
	cmd.Flags().StringVar(&f.key, "cluster-key", "", "the `file` with the cluster's keys, see dynmcp cluster key (default $"+clusterKeyVariable+")")
}

// resolve takes what no flag says from the environment.
func (f *clusterFlags) resolve() {
	f.servers = cmp.Or(f.servers, os.Getenv(clusterVariable))
	f.creds = cmp.Or(f.creds, os.Getenv(clusterCredsVariable))
	f.ca = cmp.Or(f.ca, os.Getenv(clusterCAVariable))
	f.key = cmp.Or(f.key, os.Getenv(clusterKeyVariable))
	for _, address := range f.addresses() {
		// A password may be in it, or a token in its place, also where it is no URL.
		_, after, _ := strings.Cut(address, "://")
		if i := strings.LastIndexByte(after, '@'); i >= 0 {
			_, password, ok := strings.Cut(after[:i], ":")
			if !ok {
				password = after[:i]
			}
			secrets.Add(password)
		}
	}
}

// addresses returns those of the NATS servers.
func (f *clusterFlags) addresses() []string {
	return strings.FieldsFunc(f.servers, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// connect connects to the cluster's NATS, which is tried for a while.
func (f *clusterFlags) connect(ctx context.Context, patience time.Duration, name string, log *slog.Logger) (kv.Store, error) {
	if f.servers == "" {
		return nil, hinted(errors.New("no cluster is named"), "--cluster nats://HOST:4222, or %s", clusterVariable)
	}
	if f.creds != "" {
		if _, err := regular.Read(ctx, f.creds, regular.Small); err != nil {
			return nil, fmt.Errorf("read the credentials for NATS: %w", err)
		}
	}
	if f.ca != "" {
		if _, err := regular.Read(ctx, f.ca, regular.Small); err != nil {
			return nil, fmt.Errorf("read the authorities of NATS: %w", err)
		}
	}
	nats, err := natskv.Open(natskv.Options{URLs: f.addresses(), Creds: f.creds, CA: f.ca, Name: name, Logger: log})
	if err != nil {
		return nil, hinted(fmt.Errorf("--cluster %s: %w", f.servers, err), "it is nats://HOST:4222, or several with commas between them")
	}
	store := patientStore{nats, patience}
	if _, err := store.Bucket(ctx, configBucket); err != nil {
		return nil, errors.Join(hinted(fmt.Errorf("the cluster at %s: %w", f.servers, err), "see that NATS runs there, with JetStream (nats-server -js), and takes the credentials"), store.Close())
	}
	return store, nil
}

// A patientStore tries for a while to have a bucket: while the servers of NATS agree who
// leads, which is so when all of a cluster starts, none can be made.
type patientStore struct {
	kv.Store
	patience time.Duration
}

func (s patientStore) Bucket(ctx context.Context, name string) (kv.Bucket, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for {
		bucket, err := s.Store.Bucket(ctx, name)
		if !errors.Is(err, kv.ErrUnavailable) {
			return bucket, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// A clusterState is what the replicas of a cluster share, and the keys to it.
type clusterState struct {
	store kv.Store
	keys  *seal.Keys
	log   *slog.Logger
}

// open reads the key file and connects to what the replicas share.
func (f *clusterFlags) open(ctx context.Context, patience time.Duration, name string, log *slog.Logger) (clusterState, error) {
	if f.key == "" {
		return clusterState{}, hinted(errors.New("a cluster has a key, and none is named"), "dynmcp cluster key makes one; name its file with --cluster-key or %s", clusterKeyVariable)
	}
	keys, err := readKeys(ctx, f.key)
	if err != nil {
		return clusterState{}, err
	}
	store, err := f.connect(ctx, patience, name, log)
	return clusterState{store, keys, log}, err
}

// withCluster runs a verb on what the replicas share.
func (f *clusterFlags) withCluster(cmd *cobra.Command, run func(context.Context, clusterState) error) error {
	f.resolve()
	return interruptibly(cmd, func(ctx context.Context) error {
		c, err := f.open(ctx, verbPatience, cmd.CommandPath(), slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		defer c.store.Close()
		return run(ctx, c)
	})
}

// loginBucket has the logins at remote servers, sealed.
const loginBucket = "logins"

// logins returns the logins that the replicas share.
func (c clusterState) logins(ctx context.Context) (*oauth.Store, error) {
	bucket, err := c.store.Bucket(ctx, loginBucket)
	if err != nil {
		return nil, err
	}
	return oauth.NewShared(bucket, c.keys, c.log), nil
}

// withLogins calls use with the logins of the cluster that the flags name, or the user's
// own where they name none.
func (f *clusterFlags) withLogins(ctx context.Context, use func(*oauth.Store) error) error {
	if f.resolve(); f.servers == "" {
		store, err := loginStore()
		if err != nil {
			return err
		}
		return use(store)
	}
	c, err := f.open(ctx, verbPatience, "dynmcp login", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer c.store.Close()
	logins, err := c.logins(ctx)
	if err != nil {
		return err
	}
	return use(logins)
}
