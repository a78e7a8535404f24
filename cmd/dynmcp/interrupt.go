package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
)

// An interruption is the error of a verb that a signal ended.
type interruption struct{ signal os.Signal }

func (i *interruption) Error() string { return "interrupted" }

// status returns the exit status that a shell gives a program which the signal
// killed: 130 for control-C.
func (i *interruption) status() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// interruptibly runs a verb with a context that ends when the user interrupts,
// which is said at once: what was started may take seconds to end. The second
// signal has its default effect and ends us, and Linux then ends the servers.
func interruptibly(cmd *cobra.Command, run func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endSignals(os.Interrupt, syscall.SIGHUP)...)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			signal.Stop(signals)
			out := stderr(cmd)
			if out.Interactive {
				out.ClearLine() // ^C, or what is being waited for
			}
			out.Labelled(terminal.Red, "dynmcp: ", "interrupted; ending what was started. Again ends dynmcp at once")
			cancel(&interruption{s})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	err := run(ctx)
	cancel(nil)
	<-watched
	if stopped, ok := errors.AsType[*interruption](context.Cause(ctx)); ok {
		return stopped
	}
	return err
}

// endSignals returns the signals that end dynmcp: SIGTERM, and those given that were
// not ignored when it was started. What nohup, or a script for its background jobs,
// had ignored stays ignored.
func endSignals(signals ...os.Signal) []os.Signal {
	return append(slices.DeleteFunc(signals, signal.Ignored), syscall.SIGTERM)
}
