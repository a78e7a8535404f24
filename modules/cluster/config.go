package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/cluster/members/configs"
	"github.com/dynmcp/dynmcp/modules/cluster/replica"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// withConfigs calls run with the store of the config versions of a cluster.
func withConfigs(cmd *cobra.Command, flags *replica.ClusterFlags, run func(context.Context, *configs.ConfigStore) error) error {
	return withCluster(cmd, flags, func(ctx context.Context, c replica.Cluster) error {
		bucket, err := c.Store.Bucket(ctx, replica.ConfigBucket)
		if err == nil {
			err = run(ctx, configs.New(bucket, c.Keys))
		}
		return replica.ExplainConfig(err)
	})
}

var clusterPushVerb = cli.Verb{
	Use:   "push FILE",
	Short: "Store a config for the replicas",
	Long: `Check a config file as -c does, and make it the config of all replicas that were
started without -c. They reload it at once, and keep the one they have if it does not
load there.

The text is kept as it is written, sealed with the cluster's key. Its ${VARIABLES}
and .env files are those of each replica: what is not set here is only a warning.

With --base the push is refused where a colleague has pushed since that version.`,
	Example: `  dynmcp cluster push mcp.json
  dynmcp cluster push mcp.json --base 5`,
	Args: cli.One("no config file given", "mcp.json"),
	New: func(cmd *cobra.Command) cli.Run {
		var cluster replica.ClusterFlags
		var from conf.Flags
		cluster.Add(cmd, &cli.Secrets)
		cmd.Flags().StringVarP(&from.EnvFile, "env-file", "e", "", "`file` to read variables from instead of .env, to check with")
		cli.AddOld(cmd, "env-file", "env")
		base := cmd.Flags().Int("base", 0, "push only if this `version` is the current one; 0 if there is no version yet")
		asJSON := cmd.Flags().Bool("json", false, "print the version as JSON")
		return func(cmd *cobra.Command, args []string) error {
			pushed, err := pushedConfig(cmd.Context(), cli.Stderr(cmd), args[0], from.EnvFile)
			if err != nil {
				return err
			}
			pushed.By = whoPushes()
			if !cmd.Flags().Changed("base") {
				*base = configs.AnyBase
			}
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.ConfigStore) error {
				pushed, changed, err := store.Push(ctx, pushed, *base)
				if err != nil {
					return err
				}
				if *asJSON {
					return terminal.WriteJSON(cli.Stdout(cmd), pushedVersion{pushed.Number, pushed.Name, pushed.By, pushed.At})
				}
				word := "now"
				if !changed {
					word = "already"
				}
				out := cli.Stdout(cmd)
				out.Say("%s is version %d %s.", pushed.Name, pushed.Number, word)
				return out.Err
			})
		}
	},
}

// pushedConfig checks a config file, prints warnings to out, and returns the version to push.
func pushedConfig(ctx context.Context, out *terminal.Writer, path, envFile string) (configs.Version, error) {
	options := module.Load(ctx)
	options.EnvFile = envFile
	files := schema.ReadFiles(ctx, []string{path}, options)
	cfg, err := conf.LoadFiles(files)
	if missing, ok := errors.AsType[*schema.MissingVariablesError](err); ok {
		if _, ok := errors.AsType[syntax.Errors](err); ok {
			return configs.Version{}, err
		}
		for _, use := range missing.Uses {
			out.Labelled(terminal.Yellow, "warning: ", use.Error())
		}
	} else if err != nil {
		return configs.Version{}, err
	} else {
		for _, warning := range cfg.Warnings {
			out.Labelled(terminal.Yellow, "warning: ", warning)
		}
		for _, s := range cfg.Servers {
			if s.Off != nil {
				out.Labelled(terminal.Yellow, "warning: ", fmt.Sprintf("%s is off where this stays so: %s; %s", s.Name, s.Off.Why(), s.Off.Hint))
			}
		}
	}
	return configs.Version{Name: filepath.Base(path), Text: string(files.Text())}, nil
}

func whoPushes() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if machine, err := os.Hostname(); err == nil {
		name += "@" + machine
	}
	return name
}

// A pushedVersion is the output of push --json.
type pushedVersion struct {
	Number int       `json:"version"`
	Name   string    `json:"name"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

var clusterPullVerb = cli.Verb{
	Use:   "pull",
	Short: "Print the cluster's config",
	Long: `Print the text of the cluster's config as it was pushed. Which version it is, and who
pushed it, is on stderr.`,
	Example: `  dynmcp cluster pull > mcp.json
  dynmcp cluster pull | diff - mcp.json`,
	New: func(cmd *cobra.Command) cli.Run {
		var cluster replica.ClusterFlags
		cluster.Add(cmd, &cli.Secrets)
		return func(cmd *cobra.Command, _ []string) error {
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.ConfigStore) error {
				v, err := store.Current(ctx)
				if err != nil {
					return err
				}
				cli.Stderr(cmd).Say("%s is version %d, pushed by %s at %s.", v.Name, v.Number, v.By, v.At.Format(time.RFC3339))
				out := cli.Stdout(cmd)
				out.Printf("%s", v.Text)
				return out.Err
			})
		}
	},
}
