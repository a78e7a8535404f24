package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// An Interruption is the error of a verb that was ended by a signal.
type Interruption struct{ signal os.Signal }

func (i *Interruption) Error() string { return "interrupted" }

// Status returns the exit status that shells report for a program killed by the signal: 130 for
// control-C.
func (i *Interruption) Status() int {
	if n, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 1
}

// Interruptibly runs a verb with a context that ends with the first signal. It reports the signal at
// once, because servers may take seconds to end. The second signal has its default effect.
func Interruptibly(cmd *cobra.Command, run func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, EndSignals(os.Interrupt, syscall.SIGHUP)...)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			signal.Stop(signals)
			out := Stderr(cmd)
			if out.Interactive {
				out.ClearLine() // removes ^C, or the progress line
			}
			out.Labelled(terminal.Red, "dynmcp: ", "interrupted; ending what was started. Again ends dynmcp at once")
			cancel(&Interruption{s})
		case <-ctx.Done():
			signal.Stop(signals)
		}
	}()
	err := run(ctx)
	cancel(nil)
	<-watched
	if stopped, ok := errors.AsType[*Interruption](context.Cause(ctx)); ok {
		return stopped
	}
	return err
}

// Interruptible returns a function that calls verb as Interruptibly does.
func Interruptible(verb func(ctx context.Context, cmd *cobra.Command, args []string) error) Run {
	return func(cmd *cobra.Command, args []string) error {
		return Interruptibly(cmd, func(ctx context.Context) error { return verb(ctx, cmd, args) })
	}
}

// EndSignals returns the signals that end dynmcp: SIGTERM, and the given signals that are not ignored.
// nohup and shells ignore signals for background jobs, which must stay ignored.
func EndSignals(signals ...os.Signal) []os.Signal {
	return append(slices.DeleteFunc(signals, signal.Ignored), syscall.SIGTERM)
}

// ErrInterrupted means that the context of a verb has ended.
var ErrInterrupted = errors.New("interrupted")

// Interrupted returns ErrInterrupted if err is due to a cancelled context, and err otherwise.
func Interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrInterrupted
	}
	return err
}
