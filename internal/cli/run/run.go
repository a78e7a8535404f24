// Package run serves hosts from a config until a signal, and reloads the config when its files
// change. This is a reload, on a goroutine of its own (reload_test.go compares):
//
//	reloader.run            after an event, a signal or a wish for a profile [run/reload.go]
//	└ reloader.reload       reads the files, if one has changed              [run/reload.go]
//	  └ reloader.apply      has the aggregator serve the new config          [run/reload.go]
//	    └ Parts.Follow      then the modules, each by itself                 [selfhost/parts.go]
//
// Before the modules, Aggregator.Apply makes a state of the new config, swaps it for the old one, and starts
// the eager servers that came. An error there changes nothing, and the old config stays.
package run

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/localhttp"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// Flags are the flags of a run.
type Flags struct {
	Strict  bool
	Shared  bool              // several hosts share the run
	Replica string            // the name of this replica, "" without a cluster
	Server  *localhttp.Server // of the run; nil for one without a name
	Listens []string          // addresses of the run's HTTP servers
	watch   bool
	Tree    treeFlags
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.Strict, "strict", false, "exit if a variable is not set, or a server that is not lazy cannot be started")
	cmd.Flags().BoolVar(&f.watch, "watch", true, "reload the config when its files change; SIGHUP always does")
	cmd.Flags().BoolVar(&f.watch, "reload", true, "") // pyMCPBroker's name
	_ = cmd.Flags().MarkHidden("reload")
	cmd.Flags().BoolVar(&f.Tree.ignoreBroken, "ignore-broken-tool", false, "skip tools of the tree whose definitions are broken, with a warning; otherwise it is an error of their source")
	cmd.Flags().BoolVar(&f.Tree.Dump, "dump-tree", false, "start all servers of the tree, print it and exit")
}

type endKey struct{}

// UntilSignal returns a context below parent that ends with a signal that ends dynmcp; with hangup, SIGHUP is one
// too. The second signal has its default effect.
func UntilSignal(parent context.Context, hangup bool) (ctx context.Context, stop func()) {
	signals := cli.EndSignals(os.Interrupt)
	if hangup {
		signals = cli.EndSignals(os.Interrupt, syscall.SIGHUP)
	}
	ctx, end := context.WithCancel(parent)
	ctx, stop = signal.NotifyContext(context.WithValue(ctx, endKey{}, end), signals...)
	context.AfterFunc(ctx, stop)
	// When the host no longer reads, writes fail. Without this, SIGPIPE would end dynmcp
	// instead, and leave children of the servers behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, stop
}

// Serve calls serve with an aggregator for the config, and the parts of the modules of ctx, and reloads the config when it changes. When
// Serve returns, everything that the aggregator started has ended.
func Serve(ctx context.Context, cfg *schema.Config, from *conf.Flags, flags Flags, opts aggregator.Options, serve func(*aggregator.Aggregator, selfhost.Parts) error) error {
	log := opts.Logger
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	if err := checkCommands(cfg, flags.Strict, log); err != nil {
		return err
	}
	lock := make(chan struct{}, 1)
	opts.ApprovalsChanged = lock
	opts.Strict, opts.IgnoreBrokenTools = flags.Strict, flags.Tree.ignoreBroken
	if opts.Tap == nil {
		opts.Tap = &event.Tap{}
	}
	agg, parts, err := selfhost.NewAggregator(ctx, cfg, opts, module.Run{Hosts: true, Shared: flags.Shared, Replica: flags.Replica})
	if err != nil {
		return err
	}
	defer agg.Close()
	about := runs.Run{Kind: "stdio", Config: cfg.Path, Listens: flags.Listens}
	if flags.Shared {
		about.Kind = "serve"
	}
	if from.EnvFile != "" {
		about.EnvFile, _ = filepath.Abs(from.EnvFile) // "" if the working directory is gone
	}
	end, _ := ctx.Value(endKey{}).(context.CancelFunc)
	control := runs.Control{Aggregator: agg, Messages: opts.Tap, About: about, End: end}
	if !cfg.SingleWrap {
		paths, err := from.Watched()
		if err != nil {
			return err
		}
		r := &reloader{from: from, trust: module.TrustOf(ctx), asked: make(chan wish), paths: paths, pushed: from.Pushed, read: from.Read, agg: agg, parts: parts, lock: lock, log: log}
		defer r.start(flags.watch)()
		control.Use = r.use
	}
	server := flags.Server
	if server == nil {
		if server, err = localhttp.Listen("", localhttp.Options{Log: log}); err != nil {
			log.Debug("dynmcp ui and dynmcp ps do not find this run", "err", err)
		}
	}
	if server != nil {
		defer server.Close()
		server.Start(control.Handler())
	}
	return serve(agg, parts)
}

// checkCommands logs servers that are off and commands that are missing. It returns an error for a
// missing command of a server that the run needs.
func checkCommands(cfg *schema.Config, strict bool, log *slog.Logger) error {
	for _, s := range cfg.Servers {
		if s.Off != nil {
			log.Warn("server is off", "upstream", s.Name, "why", s.Off.Why(), "hint", s.Off.Hint)
		}
		if s.Disabled || s.Transport != schema.Stdio {
			continue
		}
		err := command.Check(s)
		if err == nil {
			continue
		}
		if cfg.SingleWrap || strict && !s.Lazy() {
			return err
		}
		log.Warn("server cannot start", "upstream", s.Name, "err", err)
	}
	return nil
}
