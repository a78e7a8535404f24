// Package cluster has the verb cluster, which shows the state of replicas, and pushes and pulls
// their config.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/modules/cluster/members"
	"github.com/dynmcp/dynmcp/modules/cluster/members/configs"
	"github.com/dynmcp/dynmcp/modules/cluster/replica"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// verb shows the replicas of a cluster.
var verb = cli.Verb{
	Use:   "cluster",
	Group: cli.Develop,
	Short: "Show the replicas of a cluster and their shared state",
	Long: `Show the replicas that serve together with dynmcp serve --cluster: what each has to
do, and which of them runs the servers that run once.

The exit status is 1 where the cluster cannot be reached, a replica was not heard of
while it was looked at, or a record is broken.`,
	Example: `  dynmcp cluster --cluster nats://127.0.0.1:4222 --cluster-key cluster.key
  dynmcp cluster --json | jq -r '.leases[] | select(.server == "git").replica'`,
	Verbs: []cli.Verb{clusterKeyVerb, clusterPushVerb, clusterPullVerb},
	New: func(cmd *cobra.Command) cli.Run {
		var flags replica.ClusterFlags
		flags.Add(cmd, &cli.Secrets)
		asJSON := cmd.Flags().Bool("json", false, "print the state as JSON")
		return func(cmd *cobra.Command, _ []string) error {
			return withCluster(cmd, &flags, func(ctx context.Context, c replica.Cluster) error {
				state, err := readState(ctx, c)
				if err != nil {
					return cli.Interrupted(err)
				}
				return state.write(cli.Stdout(cmd), *asJSON)
			})
		}
	},
}

// withCluster calls run with a connection to the cluster.
func withCluster(cmd *cobra.Command, flags *replica.ClusterFlags, run func(context.Context, replica.Cluster) error) error {
	return cli.Interruptibly(cmd, func(ctx context.Context) error {
		c, err := flags.Open(ctx, cmd.CommandPath())
		if err != nil {
			return err
		}
		defer c.Close()
		return run(ctx, c)
	})
}

// A shownCluster is the displayed state of a cluster.
type shownCluster struct {
	Status   string        `json:"status"` // "ok", or "degraded" if a replica is silent or a record is broken
	Replicas []shownMember `json:"replicas"`
	Leases   []shownLease  `json:"leases"`
	Broken   []string      `json:"broken,omitempty"` // broken records, BUCKET/KEY
}

// States of a replica.
const (
	replicaOK       = "ok"
	replicaDraining = "draining"
	replicaSilent   = "silent" // no heartbeat was seen
)

type shownMember struct {
	Name     string    `json:"name"`
	ID       string    `json:"id"`
	Address  string    `json:"address"`
	Version  string    `json:"version"`
	Since    time.Time `json:"since"`
	State    string    `json:"state"`
	Sessions int       `json:"sessions"`
	Servers  int       `json:"servers"`
	Calls    int       `json:"calls"`
}

type shownLease struct {
	Server  string    `json:"server"` // followed by the user if it is for one user
	Replica string    `json:"replica"`
	Since   time.Time `json:"since"`
}

// readState reads the state until it has seen a new heartbeat of every replica, for at most four
// heartbeat intervals.
func readState(ctx context.Context, c replica.Cluster) (shownCluster, error) {
	first := map[string]uint64{} // the first heartbeat counts, by replica id
	deadline := time.Now().Add(4 * members.HeartbeatInterval)
	for {
		read, err := members.Read(ctx, c.Store)
		if err != nil {
			return shownCluster{}, err
		}
		broken, err := brokenRecords(ctx, c, read.Broken)
		if err != nil {
			return shownCluster{}, err
		}
		state := shownCluster{Status: "ok", Replicas: []shownMember{}, Leases: []shownLease{}, Broken: broken}
		if len(broken) > 0 {
			state.Status = "degraded"
		}
		names := map[string]string{}
		for _, m := range read.Members {
			if _, seen := first[m.ID]; !seen {
				first[m.ID] = m.Heartbeats
			}
			s := shownMember{m.Name, m.ID, m.Address, m.Version, m.Since, replicaOK, m.Load.Sessions, m.Load.Servers, m.Load.Calls}
			switch {
			case m.Heartbeats == first[m.ID]:
				s.State, state.Status = replicaSilent, "degraded"
			case m.Draining:
				s.State = replicaDraining
			}
			names[m.ID] = m.Name
			state.Replicas = append(state.Replicas, s)
		}
		for _, l := range read.Leases {
			state.Leases = append(state.Leases, shownLease{l.Name, names[l.Owner], l.Granted})
		}
		if state.Status == "ok" || time.Now().After(deadline) {
			return state, nil
		}
		select {
		case <-time.After(members.HeartbeatInterval / 5):
		case <-ctx.Done():
			return shownCluster{}, ctx.Err()
		}
	}
}

// brokenRecords returns the unreadable records of all buckets, as BUCKET/KEY. state are the keys of
// those in the bucket of package cluster.
func brokenRecords(ctx context.Context, c replica.Cluster, state []string) (all []string, err error) {
	for _, key := range state {
		all = append(all, members.Bucket+"/"+key)
	}
	for bucket, check := range map[string]func(records.Record) error{
		replica.ConfigBucket:   func(e records.Record) error { return configs.Check(c.Keys, e) },
		replica.LoginBucket:    func(e records.Record) error { return oauth.Check(c.Keys, e) },
		replica.ListingsBucket: store.Check,
		replica.TasksBucket:    func(e records.Record) error { return aggregator.CheckTask(c.Keys, e) },
	} {
		b, err := c.Store.Bucket(ctx, bucket)
		if err != nil {
			return nil, err
		}
		list, err := records.List(ctx, b, "")
		if err != nil {
			return nil, err
		}
		for key, e := range list {
			if check(e) != nil {
				all = append(all, bucket+"/"+key)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

func (c *shownCluster) write(out *terminal.Writer, asJSON bool) error {
	if asJSON {
		if err := terminal.WriteJSON(out, c); err != nil {
			return err
		}
	} else if len(c.Replicas) == 0 {
		out.Say("No replica runs: dynmcp serve --http ADDRESS --cluster … starts one.")
	} else {
		c.writeTables(out)
	}
	switch {
	case len(c.Broken) > 0:
		return hint.With(fmt.Errorf("the cluster is degraded: broken records: %s", strings.Join(c.Broken, ", ")), "healthy replicas replace the records of members and leases within a minute; docs/cluster.md says how to repair the others")
	case c.Status != "ok":
		return hint.With(errors.New("the cluster is degraded: a replica sends no heartbeats"), "if it stays so, see its log, or that of NATS")
	}
	return out.Err
}

func (c *shownCluster) writeTables(out *terminal.Writer) {
	replicas := terminal.Table{Header: []string{"REPLICA", "STATE", "ADDRESS", "VERSION", "SINCE", "SESSIONS", "SERVERS", "CALLS"}, Right: 5}
	for _, m := range c.Replicas {
		replicas.Rows = append(replicas.Rows, []string{m.Name, m.State, m.Address, m.Version, m.Since.Format(time.RFC3339),
			strconv.Itoa(m.Sessions), strconv.Itoa(m.Servers), strconv.Itoa(m.Calls)})
	}
	replicas.Write(out)
	if len(c.Leases) == 0 {
		return
	}
	out.Printf("\n")
	leases := terminal.Table{Header: []string{"SERVER", "REPLICA", "SINCE"}}
	for _, l := range c.Leases {
		leases.Rows = append(leases.Rows, []string{l.Server, cmp.Or(l.Replica, "-"), l.Since.Format(time.RFC3339)})
	}
	leases.Write(out)
}

var clusterKeyVerb = cli.Verb{
	Use:   "key",
	Short: "Make a key for a cluster",
	Long: `Print a new key, for the file that --cluster-key names, on every replica the same.
Who has it can read what the replicas share and speak as one of them.

The file has a key on each line, two at most, and lines that begin with #. The first
seals, both open: to replace a key add the new one below it on all replicas, then put
it first on all, then remove the old one. Other users of the machine must not be able
to read the file.`,
	Example: `  (umask 077; dynmcp cluster key > cluster.key)
  dynmcp serve --http 127.0.0.1:8080 \
    --cluster nats://127.0.0.1:4222 --cluster-key cluster.key`,
	New: func(cmd *cobra.Command) cli.Run {
		return func(cmd *cobra.Command, _ []string) error {
			key := make([]byte, seal.MinSecret)
			_, _ = rand.Read(key) // never fails
			out := cli.Stdout(cmd)
			out.Printf("%s\n", base64.StdEncoding.EncodeToString(key))
			return out.Err
		}
	},
}
