package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/replica"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/sharing"
	"github.com/dynmcp/dynmcp/internal/selfloop"
	"github.com/dynmcp/dynmcp/transports/oauth"
)

// serveFlags say where a run that serves many hosts is reached.
type serveFlags struct {
	stdioFlags
	httpFlags
	replica replica.Flags
	debug   string // address of the page
	socket  string
	idle    time.Duration
	inherit bool // dynmcp connect has started it
}

// serveCommand serves many hosts from one run.
func serveCommand() *cobra.Command {
	var from configFlags
	var flags serveFlags
	var level string
	cmd := &cobra.Command{
		Use:   "serve [--http ADDRESS] [--socket PATH]",
		Short: "Serve many hosts from one run",
		Long: `Serve many hosts from one run: every server of the config is started once, however
many hosts use it.

--socket makes a unix socket that only programs of the same user may connect to. It
carries what stdin and stdout do, for dynmcp connect, which hosts start instead.

--http serves hosts that speak HTTP, at /mcp all servers as one, at /mcp/NAME one
server as itself. Without an address of its own it is where gateway.listen of the
config says. What others than this machine reach needs --listen-public and a token.

--cluster makes the run one of several replicas behind a balancer, which share their
state in NATS: any of them takes any request. Without -c its config is the cluster's,
which dynmcp cluster push makes.`,
		Example: `  dynmcp serve --http 127.0.0.1:8080 -c mcp.json
  dynmcp serve --socket /run/user/1000/mcp.sock -c mcp.json
  dynmcp connect --socket /run/user/1000/mcp.sock
  dynmcp serve --http 127.0.0.1:8080 \
    --cluster nats://127.0.0.1:4222 --cluster-key cluster.key`,
		Args: func(cmd *cobra.Command, args []string) error {
			return cmp.Or(brokerArguments(cmd, args), noArguments(cmd, args))
		},
		RunE: func(*cobra.Command, []string) error { return flags.run(&from, level) },
	}
	from.add(cmd)
	flags.httpFlags.add(cmd)
	flags.replica.Add(cmd, &secrets)
	cmd.Flags().StringVar(&flags.debug, "debug-http", "", "the `address` of a page that shows what happens, only on this machine")
	cmd.Flags().StringVar(&flags.socket, "socket", "", "the unix `socket` on which hosts are served")
	cmd.Flags().DurationVar(&flags.idle, "idle", 0, "end when no host has been connected for this long, or the program file was replaced; 0 is never")
	cmd.Flags().BoolVar(&flags.inherit, "inherit", false, "")
	_ = cmd.Flags().MarkHidden("inherit")
	flags.stdioFlags.add(cmd)
	addLogLevel(cmd, &level, "what to log on stderr")
	return cmd
}

// run serves hosts until the end. What can fail is opened before anything is started.
func (flags *serveFlags) run(from *configFlags, level string) error {
	tuneMemoryForMany()
	out := io.Writer(os.Stderr)
	if flags.inherit {
		out = sharing.BoundedLog{File: os.Stderr}
	}
	log, err := logger(out, level)
	if err != nil {
		return err
	}
	from.strict = flags.strict
	ctx, stop := untilSignal(false)
	defer stop()
	member, err := flags.replica.Open(ctx, version, log) // nil where there is no cluster
	if member != nil {
		defer member.Close()
		if from.config == "" {
			from.read, from.pushed, err = member.FollowConfig(ctx, from.options())
			err = configError(err)
		}
	}
	if ctx.Err() != nil {
		return nil // a signal asked for that
	}
	if err != nil {
		return err
	}
	if flags.tree.dump {
		cfg, err := from.load(ctx)
		if err != nil {
			return err
		}
		return dumpTree(cfg, flags.tree, log)
	}
	var listening *sharing.Socket
	if flags.socket != "" {
		listening, err = sharing.Listen(flags.socket, sharing.Options{Idle: flags.idle, Inherit: flags.inherit, Version: version, Log: log})
		if err != nil {
			return err
		}
		defer listening.Close()
	}
	cfg, err := from.load(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if flags.address == "" && (listening == nil || member != nil) {
		flags.address = cfg.Gateway.Listen
	}
	if flags.address == "" && member != nil {
		return hinted(errors.New("a replica of a cluster is reached over HTTP"), "dynmcp serve --http 127.0.0.1:8080 --cluster %s", flags.replica.Servers())
	}
	if flags.address == "" && listening == nil {
		return hinted(errors.New("serve needs to be told where it is reached"), "dynmcp serve --http 127.0.0.1:8080, or --socket PATH; without a verb dynmcp serves one host on stdin and stdout")
	}
	watching, err := newMonitoring(cmp.Or(flags.debug, cfg.Gateway.DebugListen), cmp.Or(flags.token, cfg.Gateway.Token), flags.replica.Name(), log)
	if err != nil {
		return err
	}
	defer watching.close()
	opts := aggregator.Options{Observe: watching.observer(), Logger: log}
	if member != nil {
		if err = member.Join(ctx); err == nil {
			err = replicaOptions(ctx, member, &opts)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	// Last: who connects is answered, not reset because a replica could not join.
	var web net.Listener
	var around *selfloop.Gateway
	if flags.address != "" {
		if web, err = flags.listen(ctx, cfg.Gateway, log); err != nil {
			return err
		}
		defer web.Close()
		opts.Reserved = !flags.isLocal(web, cfg.Gateway)
		if around, err = gatewayLineage(cfg, opts.Keys); err != nil {
			return err
		}
		opts.Mark = around.Mark
	}
	return serveConfig(cfg, from, flags.stdioFlags, opts, func(agg *aggregator.Aggregator) error {
		watching.Watch(agg)
		edges, ctx := errgroup.WithContext(ctx)
		if web != nil {
			g := newGateway(web, flags.httpFlags, cfg.Gateway, agg, around, watching.Metrics(), member, log)
			if member != nil {
				defer member.Serve(agg, g)()
				edges.Go(func() error {
					<-ctx.Done()
					member.Drain()
					return nil
				})
			}
			edges.Go(func() error { return serveHTTP(ctx, web, g, agg) })
		}
		if watching.ln != nil {
			edges.Go(func() error { return watching.serve(ctx) })
		}
		if listening != nil {
			edges.Go(func() error { return listening.Serve(ctx, agg) })
		}
		return edges.Wait()
	})
}

// replicaOptions sets the options of a replica's aggregator.
func replicaOptions(ctx context.Context, member *replica.Replica, opts *aggregator.Options) error {
	if err := member.SetOptions(ctx, opts); err != nil {
		return err
	}
	logins, err := member.Logins(ctx)
	if err != nil {
		return err
	}
	open := func() (*oauth.Store, error) { return logins, nil }
	opts.Login, opts.LogIn = loginsOf(open, opts.Logger), offeredLogin(open, opts.Logger)
	return nil
}
