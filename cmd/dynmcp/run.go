package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream/command"
)

// runFlags say how the servers of a config are run.
type runFlags struct {
	strict bool
	watch  bool
	tree   treeFlags
}

func (f *runFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.strict, "strict", false, "exit if a variable is not set, or a server that is not lazy cannot be started")
	cmd.Flags().BoolVar(&f.watch, "watch", true, "reload the config when its files change; SIGHUP always does")
	cmd.Flags().BoolVar(&f.watch, "reload", true, "") // as pyMCPBroker calls it
	_ = cmd.Flags().MarkHidden("reload")
	f.tree.add(cmd)
}

// untilSignal returns a context that ends when a signal asks us to end. The second one
// has its default effect: it ends us at once. hangup is that SIGHUP asks for it as well.
func untilSignal(hangup bool) (ctx context.Context, stop func()) {
	signals := endSignals(os.Interrupt)
	if hangup {
		signals = endSignals(os.Interrupt, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	// When the host no longer reads, writes fail. Without this the signal would end
	// us instead, and leave behind what the servers started.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return ctx, stop
}

// serveConfig calls serve with an aggregator for the config, which follows its files or
// what is pushed. What the aggregator started has ended when it returns.
func serveConfig(cfg *schema.Config, from *configFlags, flags runFlags, opts aggregator.Options, serve func(*aggregator.Aggregator) error) error {
	log := opts.Logger
	for _, warning := range cfg.Warnings {
		log.Warn(warning)
	}
	if err := checkCommands(cfg, flags.strict, log); err != nil {
		return err
	}
	opts.Strict, opts.IgnoreBrokenTools = flags.strict, flags.tree.ignoreBroken
	agg, err := newAggregator(cfg, opts)
	if err != nil {
		return err
	}
	defer agg.Close()
	if !cfg.SingleWrap {
		paths, err := from.watched()
		if err != nil {
			return err
		}
		r := &reloader{envFile: from.envFile, paths: paths, pushed: from.pushed, read: from.read, agg: agg, log: log}
		defer r.start(flags.watch)()
	}
	return serve(agg)
}

// checkCommands warns of missing commands before a host is told of their servers.
// One that the run can do nothing without is fatal.
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
