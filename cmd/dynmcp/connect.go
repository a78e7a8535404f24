package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

// connectFlags say which run a host shares.
type connectFlags struct {
	configFlags
	socket string
	idle   time.Duration
	level  string
}

// connectCommand serves one host from a run that others share.
func connectCommand() *cobra.Command {
	var flags connectFlags
	cmd := &cobra.Command{
		Use:   "connect [--socket PATH]",
		Short: "Serve a host from a run that others share",
		Long: `Serve a host on stdin and stdout from a run that it shares with the other hosts of the
same user and the same config. If there is none, it is started, and ends by itself when
no host has been connected for a while.

Without --socket hosts share a run if they have the same config, home and proxies, find
the same programs for its servers, and have the same values of the environment
variables that it names. The run works in the directory of the config.`,
		Example: `  dynmcp connect -c mcp.json
  dynmcp connect --socket /run/user/1000/mcp.sock`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(os.Stderr, flags.level)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals(os.Interrupt)...)
			defer stop()
			context.AfterFunc(ctx, stop) // the second signal ends us at once
			path, err := flags.path(ctx)
			if err != nil {
				return err
			}
			var patience time.Duration
			dial := func(ctx context.Context) (*link, error) {
				l, err := flags.connect(ctx, path, patience, log)
				if flags.socket != "" {
					patience = maxReturn
				}
				return l, err
			}
			return (&relay{dial: dial, log: log}).run(ctx, os.Stdin, os.Stdout)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&flags.socket, "socket", "", "the unix `socket` of the run (default: one below $XDG_RUNTIME_DIR, by config and environment)")
	cmd.Flags().DurationVar(&flags.idle, "idle", 10*time.Minute, "a run that is started for this ends when no host has been connected for this long, a minute at most if one host alone was; 0 is never")
	addLogLevel(cmd, &flags.level, "what to log, and what a run that is started for this logs beside its socket")
	return cmd
}

// The times that connecting may take.
const (
	maxConnect   = 60 * time.Second      // until there is a run and it has admitted us
	maxReturn    = 5 * time.Second       // until another starts the run that it had started on a socket by name
	connectPause = 10 * time.Millisecond // while another starts it
)

// path returns the path of the socket of the run.
func (f *connectFlags) path(ctx context.Context) (path string, err error) {
	if path = f.socket; path == "" {
		if path, err = f.sharedSocket(ctx); err != nil {
			return "", err
		}
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	return path, checkSocketPath(path)
}

// connect returns a connection to the run, which it starts if there is none for as long
// as patience.
func (f *connectFlags) connect(ctx context.Context, path string, patience time.Duration, log *slog.Logger) (*link, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, maxConnect)
	defer cancel()
	for {
		l, err := dialSocket(ctx, path)
		if err == nil {
			if l.version != version {
				log.Info("the run that hosts share is of another version; it ends when no host is connected", "its", l.version, "ours", version)
			}
			return l, nil
		}
		if !isAbsent(err) {
			return nil, err
		}
		if time.Since(began) >= patience {
			switch err := f.startShared(ctx, path, log); {
			case err == nil:
				continue
			case !errors.Is(err, errLocked):
				return nil, err
			}
		}
		select { // for who starts it, or for one that ends
		case <-time.After(connectPause):
		case <-ctx.Done():
			return nil, hinted(fmt.Errorf("%s is held by a dynmcp that admits nobody", path), "see %s.log; fuser %s.lock names its process", path, path)
		}
	}
}
