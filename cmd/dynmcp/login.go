package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replica"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/oauth"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// loginPatience is how long a person has to log in.
const loginPatience = 5 * time.Minute

func loginCommand() *cobra.Command {
	var from configFlags
	var cluster replica.ClusterFlags
	var noBrowser bool
	var scopes []string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "login NAME [flags]",
		Short: "Log in to a remote server with OAuth",
		Long: `Log in to a server of the config that asks for it, in the browser. The login is
kept for every dynmcp of yours, running ones too, and renewed before it expires.

With --no-browser the address of the login page is printed. Where the browser is
on another machine it cannot come back here: paste the address that it ends at,
of a page that does not load. With --cluster the login is kept for its replicas.`,
		Example: `  dynmcp login linear
  dynmcp login linear --no-browser
  dynmcp login files --scope files:write`,
		Args:              oneServer,
		ValidArgsFunction: completeServers(&from, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := from.loginServer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return interruptibly(cmd, func(ctx context.Context) error {
				if timeout > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, timeout)
					defer cancel()
				}
				return withLogins(ctx, &cluster, func(store *oauth.Store) error {
					return login(ctx, stdout(cmd), cmd.InOrStdin(), store, server, scopes, noBrowser)
				})
			})
		},
	}
	from.add(cmd)
	cluster.Add(cmd, &secrets)
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "print the address of the login page instead of opening it")
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "a `scope` to ask for besides those that the server names; may be repeated")
	cmd.Flags().DurationVar(&timeout, "timeout", loginPatience, "how long to wait for the login; 0 is for ever")
	return cmd
}

func logoutCommand() *cobra.Command {
	var from configFlags
	var cluster replica.ClusterFlags
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the login at a remote server",
		Long: `Forget the login at a server of the config. Its tokens are revoked where the
server's authorization server offers that.`,
		Example:           `  dynmcp logout linear`,
		Args:              oneServer,
		ValidArgsFunction: completeServers(&from, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := from.load(cmd.Context())
			if err != nil {
				return err
			}
			server, err := serverNamed(cfg, args[0])
			if err != nil {
				return err
			}
			return interruptibly(cmd, func(ctx context.Context) error {
				return withLogins(ctx, &cluster, func(store *oauth.Store) error { return logout(ctx, stdout(cmd), store, server) })
			})
		},
	}
	from.add(cmd)
	cluster.Add(cmd, &secrets)
	return cmd
}

func oneServer(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return hinted(errors.New("no server name given"), "%s NAME; dynmcp ls lists the servers", cmd.CommandPath())
	case len(args) > 1:
		return unexpectedArgument(cmd, args[1])
	}
	return nil
}

// loginServer returns a server of the config that a person can log in to.
func (f *configFlags) loginServer(ctx context.Context, name string) (schema.Server, error) {
	cfg, err := f.load(ctx)
	if err != nil {
		return schema.Server{}, err
	}
	s, err := serverNamed(cfg, name)
	switch {
	case err != nil:
		return s, err
	case s.Transport == schema.Stdio:
		return s, hinted(fmt.Errorf("%s is a program on this machine, which there is no login for", name), "what it needs goes into its env")
	case !oauth.Applies(s):
		return s, hinted(fmt.Errorf("%s has an Authorization header in the config, which is sent in place of a login", name), "remove that header first")
	case s.Auth.Machine():
		return s, hinted(fmt.Errorf("%s logs in by itself, with the client of the config", name), "dynmcp test %s shows whether that works", name)
	}
	return s, nil
}

// login logs in and says how it goes. Addresses that are typed on in count as where
// the browser came back to.
func login(ctx context.Context, out *terminal.Writer, in io.Reader, store *oauth.Store, server schema.Server, scopes []string, noBrowser bool) error {
	flow := oauth.Flow{
		Options: oauth.Options{Store: store, Hide: secrets.Rotate},
		Server:  server,
		Scopes:  scopes,
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
		flow.Pasted = lines(ctx, in)
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

// logout forgets a login and says what came of it.
func logout(ctx context.Context, out *terminal.Writer, store *oauth.Store, server schema.Server) error {
	was, err := oauth.Options{Store: store, Hide: secrets.Rotate}.Logout(ctx, server)
	switch {
	case was && err != nil:
		out.Printf("Logged out of %s.\n", server.Name)
		return hinted(err, "the login is forgotten here; end it at the server's own page of applications if need be")
	case was:
		out.Printf("Logged out of %s.\n", server.Name)
	case err == nil:
		out.Printf("There was no login at %s.\n", server.Name)
	default:
		return err
	}
	return out.Err
}

// lines returns the lines of in that are not empty. Its goroutine ends with in, or
// with the process: a read of a terminal cannot be ended.
func lines(ctx context.Context, in io.Reader) <-chan string {
	typed := make(chan string)
	go func() {
		defer close(typed)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			text := strings.TrimSpace(scanner.Text())
			if text == "" {
				continue
			}
			select {
			case typed <- text:
			case <-ctx.Done():
				return
			}
		}
	}()
	return typed
}

// loginStore returns the user's logins. Nothing is read or made.
func loginStore() (*oauth.Store, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, fmt.Errorf("find the directory of logins: %w", err)
	}
	return oauth.NewStore(filepath.Join(dir, "logins")), nil
}

// withLogins calls use with the logins of the cluster that the flags name, or with the
// user's own if they name none.
func withLogins(ctx context.Context, flags *replica.ClusterFlags, use func(*oauth.Store) error) error {
	if flags.Servers() == "" {
		store, err := loginStore()
		if err != nil {
			return err
		}
		return use(store)
	}
	c, err := flags.Open(ctx, "dynmcp login")
	if err != nil {
		return err
	}
	defer c.Close()
	logins, err := c.Logins(ctx)
	if err != nil {
		return err
	}
	return use(logins)
}

// offeredLogin logs in to a server where a host shows the login page to its user, and
// keeps the login in the store that open returns.
func offeredLogin(open func() (*oauth.Store, error), log *slog.Logger) func(context.Context, schema.Server, func(address string)) error {
	return func(ctx context.Context, server schema.Server, show func(address string)) error {
		store, err := open()
		if err != nil {
			return err
		}
		flow := oauth.Flow{Options: oauth.Options{Store: store, Hide: secrets.Rotate, Logger: log}, Server: server, Show: show}
		_, err = flow.Run(ctx)
		return err
	}
}

// loginsOf returns how the requests to each server are authorized. The logins are
// found, in the store that open returns, when the first remote server is used.
func loginsOf(open func() (*oauth.Store, error), log *slog.Logger) func(schema.Server) upstream.Login {
	sessions := sync.OnceValues(func() (*oauth.Sessions, error) {
		store, err := open()
		if err != nil {
			return nil, err
		}
		return oauth.NewSessions(oauth.Options{Store: store, Hide: secrets.Rotate, Logger: log}), nil
	})
	return func(s schema.Server) upstream.Login {
		if !oauth.Applies(s) {
			return upstream.Login{}
		}
		all, err := sessions()
		if err != nil {
			if log != nil {
				log.Warn("no logins", "err", err)
			}
			return upstream.Login{}
		}
		session := all.For(s)
		return upstream.Login{Transport: session.Transport, Hint: session.Hint}
	}
}
