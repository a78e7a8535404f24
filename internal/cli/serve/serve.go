// Package serve has the verb serve: a run that many hosts share, and its listeners.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/crash"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/cli/process"
	"github.com/dynmcp/dynmcp/internal/cli/run"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/sharing"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// serveFlags configure a run that serves many hosts.
type serveFlags struct {
	run.Flags
	httpFlags
	cluster module.Cluster
	debug   string // address of the page
	socket  string
	idle    time.Duration
	started bool // by dynmcp connect, which waits for sharing.Ready
	orphan  bool // start the run as a child of init, and exit
}

// Verb serves many hosts from one run.
var Verb = cli.Verb{
	Use:   "serve [--http ADDRESS] [--socket PATH]",
	Group: cli.Operate,
	Short: "Serve many hosts from one run",
	Long: `Serve many hosts from one run: every server of the config is started once, however
many hosts use it.

--socket makes a unix socket that only programs of the same user may connect to. It
carries what stdin and stdout do, for dynmcp connect, which hosts start instead.

--http serves hosts that speak HTTP: all servers as one at /mcp, one server as itself at
/mcp/NAME. Without --http and --socket, gateway.listen of the config is the address. An
address that other machines reach needs --listen-public, and a token or gateway.issuers.

--cluster makes the run one of several replicas behind a balancer, which share their
state in NATS: any of them takes any request. Without -c its config is the cluster's,
which dynmcp cluster push makes.`,
	Example: `  dynmcp serve --http 127.0.0.1:8080 -c mcp.json
  dynmcp serve --socket /run/user/1000/mcp.sock -c mcp.json
  dynmcp connect --socket /run/user/1000/mcp.sock
  dynmcp serve --http 127.0.0.1:8080 \
    --cluster nats://127.0.0.1:4222 --cluster-key cluster.key`,
	Args: func(cmd *cobra.Command, args []string) error {
		return cmp.Or(run.PyMCPBrokerArguments(cmd, args), cli.NoArguments(cmd, args))
	},
	New: func(cmd *cobra.Command) cli.Run {
		var from conf.Flags
		var flags serveFlags
		var level string
		from.Add(cmd)
		flags.httpFlags.add(cmd)
		flags.cluster = module.ClusterOf(cmd.Context())
		flags.cluster.AddFlags(cmd, true)
		cmd.Flags().StringVar(&flags.debug, "debug-http", "", "the `address` of a page that shows what happens, only on this machine")
		cmd.Flags().StringVar(&flags.socket, "socket", "", "the unix `socket` on which hosts are served")
		cmd.Flags().DurationVar(&flags.idle, "idle", 0, "end when no host has been connected for this long, or the program file was replaced; 0 is never")
		cmd.Flags().BoolVar(&flags.started, "started", false, "")
		cmd.Flags().BoolVar(&flags.orphan, "orphan", false, "")
		_ = cmd.Flags().MarkHidden("started")
		_ = cmd.Flags().MarkHidden("orphan")
		flags.Flags.Add(cmd)
		cli.AddLogLevel(cmd, &level, "what to log on stderr")
		return func(cmd *cobra.Command, _ []string) error { return flags.run(cmd.Context(), &from, level) }
	},
}

// run serves hosts until a signal, or until a listener ends.
func (flags *serveFlags) run(ctx context.Context, from *conf.Flags, level string) error {
	if flags.orphan {
		return sharing.Orphan()
	}
	process.TuneMemoryForMany()
	out := io.Writer(os.Stderr)
	if flags.started {
		out = sharing.BoundedLog{File: os.Stderr}
	}
	out, end := crash.Watch(out, conf.CrashDir(), cli.Version)
	defer end()
	log, err := cli.Logger(out, level)
	if err != nil {
		return err
	}
	from.Strict, flags.Shared = flags.Strict, true
	ctx, stop := run.UntilSignal(ctx, false)
	defer stop()
	s := &server{flags: flags, from: from, log: log}
	defer s.close()
	if err = s.load(ctx); err == nil && flags.Tree.Dump {
		return run.DumpTree(ctx, s.cfg, flags.Tree, log)
	}
	if err == nil {
		err = s.open(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return nil // requested by a signal
	case err != nil:
		return err
	}
	flags.Replica = flags.cluster.Name() // its default is set by load
	return run.Serve(ctx, s.cfg, from, flags.Flags, s.options, func(agg *aggregator.Aggregator, parts selfhost.Parts) error {
		if web := parts.Web(); web != nil {
			web.Watch(agg.Status())
			s.page.web = web
			if s.web != nil {
				s.web.metrics = web.Metrics()
			}
		}
		if s.web != nil {
			s.web.own = parts.Own()
		}
		group, ctx := errgroup.WithContext(ctx)
		for _, l := range s.listeners {
			group.Go(func() error { return l.serve(ctx, agg) })
		}
		return group.Wait()
	})
}

// A listener is one way to reach a run.
type listener interface {
	// open opens the listener, and sets the options of the aggregator that depend on it.
	open(ctx context.Context, options *aggregator.Options) error
	// serve serves until ctx ends.
	serve(ctx context.Context, agg *aggregator.Aggregator) error
	// close releases what open has opened, also if open failed or was not called.
	close()
}

// A server is a run that serves many hosts.
type server struct {
	flags *serveFlags
	from  *conf.Flags
	log   *slog.Logger

	// Set by load.
	replica module.Replica // nil without a cluster
	cfg     *schema.Config

	// Set by open.
	page      *pageListener
	web       *httpListener // nil without an address
	listeners []listener    // page is one of them
	options   aggregator.Options
}

// load connects to the cluster, if there is one, and loads the config.
func (s *server) load(ctx context.Context) (err error) {
	if s.replica, err = s.flags.cluster.Open(ctx, cli.Version, s.log); err != nil {
		return err
	}
	if s.replica != nil && s.from.Config == "" {
		if s.from.Read, s.from.Pushed, err = s.replica.FollowConfig(ctx, s.from.Options(ctx)); err != nil {
			return err
		}
	}
	s.cfg, err = s.from.Load(ctx)
	return err
}

// open opens the listeners. HTTP is the last, so that load balancers connect only to a replica that
// has joined.
func (s *server) open(ctx context.Context) error {
	web := &httpListener{httpFlags: s.flags.httpFlags, cfg: s.cfg, replica: s.replica, log: s.log}
	if web.address == "" && (s.flags.socket == "" || s.replica != nil) {
		web.address = s.cfg.Gateway.Listen
	}
	switch {
	case s.flags.idle < 0 || s.flags.idle > 0 && s.flags.socket == "":
		return hint.With(fmt.Errorf("--idle %v ends no run", s.flags.idle), "it is a time like 10m, and goes with --socket; 0 is never")
	case web.address != "":
	case s.replica != nil:
		return hint.With(errors.New("a replica of a cluster is reached over HTTP"), "dynmcp serve --http 127.0.0.1:8080 --cluster %s", s.flags.cluster.Servers())
	case s.flags.socket == "":
		return hint.With(errors.New("serve needs to be told where it is reached"), "dynmcp serve --http 127.0.0.1:8080, or --socket PATH; without a verb dynmcp serves one host on stdin and stdout")
	}
	gateway := s.cfg.Gateway
	s.page = &pageListener{address: cmp.Or(s.flags.debug, gateway.DebugListen), token: cmp.Or(s.flags.token, gateway.Token), ui: gateway.UI, log: s.log}
	s.listeners = []listener{s.page}
	if s.flags.socket != "" {
		s.listeners = append(s.listeners, &socketListener{flags: s.flags, log: s.log})
	}
	if web.address != "" {
		s.web = web
		s.listeners = append(s.listeners, web)
	}
	s.options.Logger = s.log
	for _, l := range s.listeners {
		if err := l.open(ctx, &s.options); err != nil {
			return err
		}
	}
	for _, ln := range []net.Listener{s.page.ln, web.ln} {
		if ln != nil {
			s.flags.Listens = append(s.flags.Listens, ln.Addr().String())
		}
	}
	return nil
}

func (s *server) close() {
	for _, l := range slices.Backward(s.listeners) {
		l.close()
	}
	if s.replica != nil {
		s.replica.Close()
	}
}

// A socketListener serves hosts on the private server of the run, which has a name.
type socketListener struct {
	flags *serveFlags
	log   *slog.Logger
}

func (l *socketListener) open(context.Context, *aggregator.Options) (err error) {
	l.flags.Server, err = localhttp.Listen(l.flags.socket, localhttp.Options{Idle: l.flags.idle, Version: cli.Version, Log: l.log})
	return err
}

func (l *socketListener) serve(ctx context.Context, agg *aggregator.Aggregator) error {
	agg.StartShared()
	if l.flags.started {
		sharing.Ready()
	}
	l.flags.Server.Serve(agg.While(ctx), agg.ServeConn)
	return agg.Err()
}

func (l *socketListener) close() {
	if l.flags.Server != nil {
		l.flags.Server.Close()
	}
}
