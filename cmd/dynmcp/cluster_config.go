package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replica"
	"github.com/dynmcp/dynmcp/internal/cluster/configs"
	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/schema"
)

// withConfigs runs a verb on the config versions of a cluster.
func withConfigs(cmd *cobra.Command, flags *replica.ClusterFlags, run func(context.Context, *configs.Store) error) error {
	return withCluster(cmd, flags, func(ctx context.Context, c replica.Cluster) error {
		bucket, err := c.Store.Bucket(ctx, replica.ConfigBucket)
		if err == nil {
			err = run(ctx, configs.New(bucket, c.Keys))
		}
		return configError(err)
	})
}

// configError adds what to do to an error of a config's versions.
func configError(err error) error {
	switch {
	case errors.Is(err, configs.ErrNone):
		return hinted(err, "dynmcp cluster push mcp.json makes the first version")
	case errors.Is(err, configs.ErrVersion):
		return hinted(err, "dynmcp cluster history lists them")
	case errors.Is(err, configs.ErrChanged):
		return hinted(err, "nothing was pushed; see dynmcp cluster history, then push again")
	case errors.Is(err, configs.ErrKey):
		return hinted(err, "name the file that the replicas have with --cluster-key")
	case errors.Is(err, kv.ErrUnavailable):
		return hinted(err, "dynmcp cluster history shows whether it was done")
	}
	return err
}

func clusterPushCommand() *cobra.Command {
	var cluster replica.ClusterFlags
	var from configFlags
	var base int
	var comment string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Make a config file what the replicas serve",
		Long: `Check a config file as -c does, and make it the config of all replicas that were
started without -c. They reload it at once, and keep the one they have if it does not
load there.

The text is kept as it is written, sealed with the cluster's key. Its ${VARIABLES}
and .env files are those of each replica: what is not set here is only a warning.

With --base the push is refused where a colleague has pushed since that version.`,
		Example: `  dynmcp cluster push mcp.json
  dynmcp cluster push mcp.json -m "search is lazy now"
  dynmcp cluster push mcp.json --base 5`,
		Args: oneArgument("a config file", "dynmcp cluster push mcp.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pushed, err := pushedConfig(stderr(cmd), args[0], from.envFile)
			if err != nil {
				return err
			}
			pushed.By, pushed.Comment = whoPushes(), comment
			if !cmd.Flags().Changed("base") {
				base = configs.AnyBase
			}
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.Store) error {
				now, err := store.Current(ctx)
				if err != nil && !errors.Is(err, configs.ErrNone) {
					return err
				}
				if !now.Broken && (base == configs.AnyBase || base == now.Number) && now.Name == pushed.Name && now.Text == pushed.Text {
					return showPushed(stdout(cmd), now, fmt.Sprintf("%s is version %d already.", now.Name, now.Number), asJSON)
				}
				if pushed, err = store.Push(ctx, pushed, base); err != nil {
					return err
				}
				return showPushed(stdout(cmd), pushed, fmt.Sprintf("%s is version %d now.", pushed.Name, pushed.Number), asJSON)
			})
		},
	}
	cluster.Add(cmd, &secrets)
	cmd.Flags().StringVarP(&from.envFile, "env", "e", "", "`file` to read variables from instead of .env, to check with")
	cmd.Flags().IntVar(&base, "base", 0, "push only if this `version` is the current one; 0 is that there is none yet")
	cmd.Flags().StringVarP(&comment, "message", "m", "", "a `text` that the history shows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the version as JSON")
	return cmd
}

// pushedConfig checks a config file as one that replicas are to serve, and returns it.
func pushedConfig(out *terminal, path, envFile string) (configs.Version, error) {
	files := schema.ReadFiles(context.Background(), []string{path}, schema.LoadOptions{EnvFile: envFile})
	cfg, err := loadFiles(files)
	if missing, ok := errors.AsType[*schema.MissingVariablesError](err); ok {
		if _, ok := errors.AsType[schema.Errors](err); ok {
			return configs.Version{}, err
		}
		for _, use := range missing.Uses {
			out.labelled(yellow, "warning: ", use.Error())
		}
	} else if err != nil {
		return configs.Version{}, err
	} else {
		for _, warning := range cfg.Warnings {
			out.labelled(yellow, "warning: ", warning)
		}
		for _, s := range cfg.Servers {
			if s.Off != nil {
				out.labelled(yellow, "warning: ", fmt.Sprintf("%s is off where this stays so: %s; %s", s.Name, s.Off.Why(), s.Off.Hint))
			}
		}
	}
	return configs.Version{Name: filepath.Base(path), Text: string(files.Text())}, nil
}

// whoPushes names the user, and the machine.
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

// A pushedVersion is a version as it is shown, without its text.
type pushedVersion struct {
	Number     int       `json:"version"`
	Name       string    `json:"name"`
	By         string    `json:"by"`
	At         time.Time `json:"at"`
	Comment    string    `json:"comment,omitempty"`
	RolledBack int       `json:"rolled_back_to,omitempty"`
}

func shown(v configs.Version) pushedVersion {
	return pushedVersion{v.Number, v.Name, v.By, v.At, v.Comment, v.RolledBack}
}

// showPushed says that a version is current, in a sentence or as JSON.
func showPushed(out *terminal, v configs.Version, sentence string, asJSON bool) error {
	if asJSON {
		return writeJSON(out, shown(v))
	}
	out.say("%s", sentence)
	return out.err
}

func clusterHistoryCommand() *cobra.Command {
	var cluster replica.ClusterFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the versions of the cluster's config",
		Long: fmt.Sprintf(`List the versions of the cluster's config, the newest first: that one is served by
replicas that were started without -c. The last %d are kept.`, configs.Kept),
		Example: `  dynmcp cluster history
  dynmcp cluster history --json | jq -r '.[0].version'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.Store) error {
				all, err := store.History(ctx)
				if err != nil {
					return err
				}
				return writeHistory(stdout(cmd), all, asJSON)
			})
		},
	}
	cluster.Add(cmd, &secrets)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

func writeHistory(out *terminal, all []configs.Version, asJSON bool) error {
	if asJSON {
		list := make([]pushedVersion, len(all))
		for i, v := range all {
			list[i] = shown(v)
		}
		return writeJSON(out, list)
	}
	t := table{header: []string{"VERSION", "PUSHED", "BY", "FILE", "COMMENT"}, shrink: 4}
	for _, v := range all {
		comment := v.Comment
		if v.RolledBack > 0 {
			comment = strings.TrimSuffix(fmt.Sprintf("version %d again: %s", v.RolledBack, comment), ": ")
		}
		at := ""
		if !v.At.IsZero() {
			at = v.At.Format(time.RFC3339)
		}
		t.rows = append(t.rows, []string{strconv.Itoa(v.Number), cmp.Or(at, "-"), cmp.Or(v.By, "-"), cmp.Or(v.Name, "-"), comment})
	}
	t.write(out)
	return out.err
}

func clusterPullCommand() *cobra.Command {
	var cluster replica.ClusterFlags
	cmd := &cobra.Command{
		Use:   "pull [VERSION]",
		Short: "Print the cluster's config",
		Long:  `Print the text of the cluster's config, or of an earlier version, as it was pushed.`,
		Example: `  dynmcp cluster pull > mcp.json
  dynmcp cluster pull 3 | diff - mcp.json`,
		Args:              atMost(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			number := 0
			if len(args) > 0 {
				var err error
				if number, err = versionNumber(args[0]); err != nil {
					return err
				}
			}
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.Store) error {
				v, err := store.Current(ctx)
				if number > 0 && (err == nil || errors.Is(err, configs.ErrKey)) {
					v, err = store.Version(ctx, number)
				}
				if err != nil {
					return err
				}
				out := stdout(cmd)
				out.printf("%s", v.Text)
				return out.err
			})
		},
	}
	cluster.Add(cmd, &secrets)
	return cmd
}

func clusterRollbackCommand() *cobra.Command {
	var cluster replica.ClusterFlags
	var comment string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rollback VERSION",
		Short: "Make an earlier config what the replicas serve again",
		Long: `Make the text of an earlier version the config of the replicas again, as another
version. With the number of the current one it seals the same text anew, with the first
key of the file; that has to be done before an older key is removed.`,
		Example: `  dynmcp cluster rollback 3
  dynmcp cluster rollback 3 -m "search was not ready"`,
		Args:              oneArgument("a version", "dynmcp cluster history lists them"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := versionNumber(args[0])
			if err != nil {
				return err
			}
			return withConfigs(cmd, &cluster, func(ctx context.Context, store *configs.Store) error {
				v, err := store.Rollback(ctx, number, whoPushes(), comment)
				if err != nil {
					return err
				}
				return showPushed(stdout(cmd), v, fmt.Sprintf("%s of version %d is version %d now.", v.Name, number, v.Number), asJSON)
			})
		},
	}
	cluster.Add(cmd, &secrets)
	cmd.Flags().StringVarP(&comment, "message", "m", "", "a `text` that the history shows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the version as JSON")
	return cmd
}

func versionNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, hinted(fmt.Errorf("%q is no version", text), "versions are numbers; dynmcp cluster history lists them")
	}
	return n, nil
}

// oneArgument takes one argument; hint says how to come by it.
func oneArgument(what, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return hinted(fmt.Errorf("%s: %s is missing", cmd.CommandPath(), what), "%s", hint)
		case len(args) > 1:
			return unexpectedArgument(cmd, args[1])
		}
		return nil
	}
}
