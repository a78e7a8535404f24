package credentials

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/login"
	"github.com/dynmcp/dynmcp/internal/cli/secret"
	"github.com/dynmcp/dynmcp/internal/secretref"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// verb manages the values of users.
var verb = cli.Verb{
	Group: cli.Guard,
	Use:   "credential",
	Short: "Manage what servers are called with for each user",
	Long: `Manage what servers are called with for each user: ${user:NAME} in the env or the
headers of a server is the value NAME of the user who calls it.

--principal names a user of the gateway, as dynmcp log shows him; without it, it is
the user who runs dynmcp. With --cluster the values are kept for the replicas.`,
	Example: `  dynmcp credential set GITHUB_TOKEN
  dynmcp credential list --principal "https://login.example.com ann"`,
	Verbs: []cli.Verb{setVerb, listVerb, removeVerb},
}

var setVerb = cli.Verb{
	Use:   "set NAME",
	Short: "Keep a value, or replace it",
	Long: `Keep a value, or replace it. It is asked for on a terminal, and not shown.
Elsewhere it is read from stdin, without the newline at its end. Running servers get
it within some seconds.`,
	Example: `  dynmcp credential set GITHUB_TOKEN
  gh auth token | dynmcp credential set GITHUB_TOKEN --principal bearer`,
	Args: oneName,
	New: func(cmd *cobra.Command) cli.Run {
		return withStore(cmd, func(ctx context.Context, cmd *cobra.Command, store *logins.Store, principal string, args []string) error {
			value, err := askValue(cmd, args[0])
			if err == nil {
				err = logins.CheckValue(args[0], value)
			}
			if err == nil {
				_, err = store.SetValue(ctx, principal, args[0], value)
			}
			return err
		})
	},
}

var listVerb = cli.Verb{
	Use:     "list",
	Short:   "List the names of a user's values",
	Long:    `List the names of a user's values. No value is shown.`,
	Example: "  dynmcp credential list",
	Args:    cli.NoArguments,
	New: func(cmd *cobra.Command) cli.Run {
		return withStore(cmd, func(_ context.Context, cmd *cobra.Command, store *logins.Store, principal string, _ []string) error {
			names, err := store.ValueNames(principal)
			out := cli.Stdout(cmd)
			for _, name := range names {
				out.Printf("%s\n", name)
			}
			return errors.Join(err, out.Err)
		})
	},
}

var removeVerb = cli.Verb{
	Use:     "remove NAME",
	Short:   "Remove a value",
	Long:    `Remove a value. Servers that run with it are stopped within some seconds.`,
	Example: "  dynmcp credential remove GITHUB_TOKEN",
	Args:    oneName,
	New: func(cmd *cobra.Command) cli.Run {
		return withStore(cmd, func(ctx context.Context, _ *cobra.Command, store *logins.Store, principal string, args []string) error {
			was, err := store.SetValue(ctx, principal, args[0], "")
			if err == nil && !was {
				return hint.With(fmt.Errorf("there is no value %s", args[0]), "dynmcp credential list lists them")
			}
			return err
		})
	},
}

var oneName = cli.One("no name given", "NAME; dynmcp credential list lists the names")

// withStore adds the flags of all these verbs, and calls use with the store that they select.
func withStore(cmd *cobra.Command, use func(context.Context, *cobra.Command, *logins.Store, string, []string) error) cli.Run {
	cluster := module.ClusterOf(cmd.Context())
	cluster.AddFlags(cmd, false)
	principal := cmd.Flags().String("principal", "", "the `user` of the gateway whose values they are (default the one who runs dynmcp)")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return login.WithStore(ctx, cluster, func(store *logins.Store) error { return use(ctx, cmd, store, *principal, args) })
	})
}

// askValue reads a value from the terminal without echo, or from stdin.
func askValue(cmd *cobra.Command, name string) (string, error) {
	var text []byte
	var err error
	if in := cli.Terminal(cmd); in != nil {
		text, err = secret.ReadUnseen(cmd.Context(), int(in.Fd()), cli.Stderr(cmd), "The value "+name+": ")
	} else {
		text, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), logins.MaxValue+2))
	}
	if err != nil {
		return "", fmt.Errorf("read the value: %w", err)
	}
	value := secretref.TrimNewline(string(text))
	cli.Secrets.Add(value)
	return value, nil
}
