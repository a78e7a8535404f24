package replica

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

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/records/natskv"
	"github.com/dynmcp/dynmcp/internal/redact"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// Timeouts for reaching NATS.
const (
	startTimeout = 30 * time.Second // of a replica, which may start before NATS
	verbTimeout  = 10 * time.Second
)

// The buckets of the shared state. Package cluster has another one.
const (
	ConfigBucket   = "config"  // the config document
	LoginBucket    = "logins"  // logins at remote servers, encrypted
	TasksBucket    = "tasks"   // the owners of servers' tasks
	ListingsBucket = "catalog" // listings of servers
)

// ClusterFlags are the flags that select a cluster.
type ClusterFlags struct {
	servers string // addresses of the NATS servers, separated by commas
	creds   string // file
	ca      string // file
	key     string // file
	secrets *redact.Redactor
}

// Environment variables for the flags.
const (
	clusterVariable      = "DYNMCP_CLUSTER"
	clusterCredsVariable = "DYNMCP_CLUSTER_CREDS"
	clusterCAVariable    = "DYNMCP_CLUSTER_CA"
	clusterKeyVariable   = "DYNMCP_CLUSTER_KEY"
)

// Add adds the flags to a verb. Secrets in their values are added to secrets.
func (f *ClusterFlags) Add(cmd *cobra.Command, secrets *redact.Redactor) {
	f.secrets = secrets
	cmd.Flags().StringVar(&f.servers, "cluster", "", "the `addresses` of the cluster's NATS servers, with commas between them (default $"+clusterVariable+")")
	cmd.Flags().StringVar(&f.creds, "cluster-creds", "", "the `file` with the credentials for NATS (default $"+clusterCredsVariable+")")
	cmd.Flags().StringVar(&f.ca, "cluster-ca", "", "the `file` with the authorities of the NATS servers' certificates (PEM; default $"+clusterCAVariable+", or the system's)")
	cmd.Flags().StringVar(&f.key, "cluster-key", "", "the `file` with the cluster's keys, see dynmcp cluster key (default $"+clusterKeyVariable+")")
}

// Servers returns the addresses of the NATS servers as given, "" without a cluster.
func (f *ClusterFlags) Servers() string {
	f.resolve()
	return f.servers
}

// resolve fills unset flags from the environment.
func (f *ClusterFlags) resolve() {
	f.servers = cmp.Or(f.servers, os.Getenv(clusterVariable))
	f.creds = cmp.Or(f.creds, os.Getenv(clusterCredsVariable))
	f.ca = cmp.Or(f.ca, os.Getenv(clusterCAVariable))
	f.key = cmp.Or(f.key, os.Getenv(clusterKeyVariable))
	for _, address := range f.addresses() {
		// The address may contain a password or a token, even if it is not a valid URL.
		_, after, _ := strings.Cut(address, "://")
		if i := strings.LastIndexByte(after, '@'); i >= 0 {
			_, password, ok := strings.Cut(after[:i], ":")
			if !ok {
				password = after[:i]
			}
			f.secrets.Add(password)
		}
	}
}

func (f *ClusterFlags) addresses() []string {
	return strings.FieldsFunc(f.servers, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// A Cluster is a connection to the shared state of the replicas, with its keys.
type Cluster struct {
	Store records.Store
	Keys  *seal.Keys
	log   *slog.Logger
}

// Open connects a verb to the cluster. name identifies the connection in NATS.
func (f *ClusterFlags) Open(ctx context.Context, name string) (Cluster, error) {
	return f.open(ctx, verbTimeout, name, slog.New(slog.DiscardHandler))
}

// open reads the key file and connects to the cluster.
func (f *ClusterFlags) open(ctx context.Context, timeout time.Duration, name string, log *slog.Logger) (Cluster, error) {
	f.resolve()
	if f.key == "" {
		return Cluster{}, hint.With(errors.New("a cluster has a key, and none is named"), "dynmcp cluster key makes one; name its file with --cluster-key or %s", clusterKeyVariable)
	}
	keys, err := readKeys(ctx, f.key, f.secrets)
	if err != nil {
		return Cluster{}, err
	}
	store, err := f.connect(ctx, timeout, name, log)
	return Cluster{store, keys, log}, err
}

// connect connects to the cluster's NATS, and retries until timeout.
func (f *ClusterFlags) connect(ctx context.Context, timeout time.Duration, name string, log *slog.Logger) (records.Store, error) {
	if f.servers == "" {
		return nil, hint.With(errors.New("no cluster is named"), "--cluster nats://HOST:4222, or %s", clusterVariable)
	}
	for _, file := range [][2]string{{f.creds, "credentials for"}, {f.ca, "authorities of"}} {
		if file[0] == "" {
			continue
		}
		if _, err := regular.Read(ctx, file[0], regular.Small); err != nil {
			return nil, fmt.Errorf("read the %s NATS: %w", file[1], err)
		}
	}
	nats, err := natskv.Open(natskv.StoreOptions{URLs: f.addresses(), Creds: f.creds, CA: f.ca, Name: name, Logger: log})
	if err != nil {
		return nil, hint.With(fmt.Errorf("--cluster %s: %w", f.servers, err), "it is nats://HOST:4222, or several with commas between them")
	}
	store := retryStore{nats, timeout}
	if _, err := store.Bucket(ctx, ConfigBucket); err != nil {
		return nil, errors.Join(hint.With(fmt.Errorf("the cluster at %s: %w", f.servers, err), "see that NATS runs there, with JetStream (nats-server -js), and takes the credentials"), store.Close())
	}
	return store, nil
}

// A retryStore retries to open a bucket while the store is unavailable. After a start, the NATS
// servers need some time to elect a leader.
type retryStore struct {
	records.Store
	timeout time.Duration
}

func (s retryStore) Bucket(ctx context.Context, name string) (records.Bucket, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		bucket, err := s.Store.Bucket(ctx, name)
		if !errors.Is(err, records.ErrUnavailable) {
			return bucket, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Close ends the connection.
func (c Cluster) Close() error { return c.Store.Close() }

// Logins returns the store of the logins that the replicas share.
func (c Cluster) Logins(ctx context.Context) (*logins.Store, error) {
	bucket, err := c.Store.Bucket(ctx, LoginBucket)
	if err != nil {
		return nil, err
	}
	return logins.NewShared(bucket, c.Keys, logins.LockTime, c.log), nil
}
