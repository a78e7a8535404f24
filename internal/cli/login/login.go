// Package login has the verbs login and logout, and authorizes requests to servers with the stored
// logins.
package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/oauth/logins"
)

// loginTimeout is the default of --timeout.
const loginTimeout = 5 * time.Minute

// Login logs in to a server.
var Login = cli.Verb{
	Use:   "login NAME [flags]",
	Group: cli.Guard,
	Short: "Log in to a remote server with OAuth",
	Long: `Log in to a server of the config that asks for it, in the browser. The login is
kept for every dynmcp of yours, running ones too, and renewed before it expires.

With --no-browser the address of the login page is printed. A browser on another
machine ends at a page that does not load: paste the address of that page. With
--cluster the login is kept for the replicas.`,
	Example: `  dynmcp login linear
  dynmcp login linear --no-browser
  dynmcp login files --scope files:write`,
	Args: oneServer,
	New: func(cmd *cobra.Command) cli.Run {
		var from conf.Flags
		from.Add(cmd)
		cluster := module.ClusterOf(cmd.Context())
		cluster.AddFlags(cmd, false)
		forget := cmd.Flags().Bool("forget", false, "remove the stored login, and revoke its tokens where that is possible")
		principal := addPrincipal(cmd)
		noBrowser := cmd.Flags().Bool("no-browser", false, "print the address of the login page instead of opening it")
		scopes := cmd.Flags().StringSlice("scope", nil, "a `scope` to ask for besides those that the server names; may be repeated")
		timeout := cmd.Flags().Duration("timeout", loginTimeout, "how long to wait for the login; 0 is for ever")
		cmd.ValidArgsFunction = conf.CompleteServers(&from, "")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			from.Only = args
			if *forget {
				return forgetLogin(ctx, cmd, &from, cluster, *principal)
			}
			if *principal != "" {
				return hint.With(errors.New("--principal goes with --forget"), "a user of the gateway logs in at its page")
			}
			server, err := loginServer(ctx, &from, args[0])
			if err != nil {
				return err
			}
			if *timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, *timeout)
				defer cancel()
			}
			return WithStore(ctx, cluster, func(store *logins.Store) error {
				return login(ctx, cli.Stdout(cmd), cmd.InOrStdin(), store, server, *scopes, *noBrowser)
			})
		})
	},
}

// Logout deletes a login.
var Logout = cli.Verb{
	Use:    "logout NAME",
	Hidden: true,
	Short:  "Remove a stored login",
	Long: `Forget the login at a server of the config. Its tokens are revoked where the
server's authorization server offers that. --principal names a user of the
gateway, whose own login at a server with credentials of users is forgotten.`,
	Example: `  dynmcp login linear --forget
  dynmcp login linear --forget --principal "https://login.example.com ann"`,
	Args: oneServer,
	New: func(cmd *cobra.Command) cli.Run {
		var from conf.Flags
		from.Add(cmd)
		cluster := module.ClusterOf(cmd.Context())
		cluster.AddFlags(cmd, false)
		principal := addPrincipal(cmd)
		cmd.ValidArgsFunction = conf.CompleteServers(&from, "")
		return cli.Interruptible(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			from.Only = args
			return forgetLogin(ctx, cmd, &from, cluster, *principal)
		})
	},
}

func addPrincipal(cmd *cobra.Command) *string {
	return cmd.Flags().String("principal", "", "with --forget, the `user` of the gateway whose login it is, as dynmcp log shows him")
}

// forgetLogin removes the login at the server that from selects.
func forgetLogin(ctx context.Context, cmd *cobra.Command, from *conf.Flags, cluster module.Cluster, principal string) error {
	cfg, err := from.Load(ctx)
	if err != nil {
		return err
	}
	server, err := conf.Usable(cfg, from.Only[0])
	if err != nil {
		return err
	}
	return WithStore(ctx, cluster, func(store *logins.Store) error { return logout(ctx, cli.Stdout(cmd), store, server, principal) })
}

var oneServer = cli.One("no server name given", "NAME; dynmcp ls lists the servers")

// loginServer returns a server of the config that a person can log in to.
func loginServer(ctx context.Context, f *conf.Flags, name string) (schema.Server, error) {
	cfg, err := f.Load(ctx)
	if err != nil {
		return schema.Server{}, err
	}
	s, err := conf.Usable(cfg, name)
	switch {
	case err != nil:
		return s, err
	case s.Transport == schema.Stdio:
		return s, hint.With(fmt.Errorf("%s is a program, and only servers at an address have a login", name), "put the key that it needs into its env")
	case !oauth.Applies(s):
		return s, hint.With(fmt.Errorf("%s has an Authorization header in the config, which is sent in place of a login", name), "remove that header first")
	case s.Auth.Machine():
		return s, hint.With(fmt.Errorf("%s logs in by itself, with the client of the config", name), "dynmcp test %s shows whether that works", name)
	}
	return s, nil
}

// login logs in and prints the progress. With noBrowser, a line of in may be the address of the
// redirect that ends the login.
func login(ctx context.Context, out *terminal.Writer, in io.Reader, store *logins.Store, server schema.Server, scopes []string, noBrowser bool) error {
	flow := oauth.Flow{
		LoginOptions: oauth.LoginOptions{Store: store, Hide: cli.Secrets.Rotate},
		Server:       server,
		Scopes:       scopes,
	}
	flow.Show = func(address string) {
		if !noBrowser {
			if err := oauth.OpenBrowser(address); err == nil {
				out.Printf("Log in to %s in the browser. If it does not open, go to:\n  %s\n", server.Name, address)
				return
			}
		}
		out.Printf("Log in to %s at:\n  %s\n", server.Name, address)
		if noBrowser {
			out.Printf("If the browser cannot come back to this machine, paste the address it ends at:\n")
		}
	}
	if noBrowser {
		flow.Pasted = cli.Lines(ctx, in)
	}
	made, err := flow.Run(ctx)
	if err != nil {
		return fmt.Errorf("log in to %s: %w", server.Name, err)
	}
	out.Printf("Logged in to %s", server.Name)
	if len(made.Scopes) > 0 {
		out.Printf(", with the scopes %s", strings.Join(made.Scopes, " "))
	}
	out.Printf(".\n")
	return out.Err
}

func logout(ctx context.Context, out *terminal.Writer, store *logins.Store, server schema.Server, principal string) error {
	was, err := oauth.LoginOptions{Store: store, Hide: cli.Secrets.Rotate}.Logout(ctx, server, principal)
	switch {
	case was && err != nil:
		out.Printf("Logged out of %s.\n", server.Name)
		return hint.With(err, "the login is forgotten here; end it at the server's own page of applications if need be")
	case was:
		out.Printf("Logged out of %s.\n", server.Name)
	case err == nil:
		out.Printf("There was no login at %s.\n", server.Name)
	default:
		return err
	}
	return out.Err
}

// Store returns the store of the user's logins. It reads and creates nothing.
func Store() (*logins.Store, error) {
	dir, err := conf.StateDir()
	if err != nil {
		return nil, fmt.Errorf("find the directory of logins: %w", err)
	}
	return logins.NewFiles(filepath.Join(dir, "logins")), nil
}

// WithStore calls use with the logins of the cluster that is selected, or else with those of the
// user.
func WithStore(ctx context.Context, cluster module.Cluster, use func(*logins.Store) error) error {
	if cluster.Servers() == "" {
		store, err := Store()
		if err != nil {
			return err
		}
		return use(store)
	}
	store, end, err := cluster.Logins(ctx, "dynmcp login")
	if err != nil {
		return err
	}
	defer end()
	return use(store)
}
