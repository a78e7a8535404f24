package clustercmd

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/seal"
)

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
