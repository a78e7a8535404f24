package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
)

// CompleteValues completes flags with the given values.
func CompleteValues(cmd *cobra.Command, flags map[string][]string) {
	for name, values := range flags {
		// It fails only if the flag does not exist.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// AddOld adds an older name of a flag, which help does not show.
func AddOld(cmd *cobra.Command, name, old string) {
	f := *cmd.Flags().Lookup(name)
	f.Name, f.Shorthand, f.Hidden = old, "", true
	cmd.Flags().AddFlag(&f)
}

// AddLogLevel adds --log-level; what describes the messages.
func AddLogLevel(cmd *cobra.Command, level *string, what string) {
	cmd.Flags().StringVar(level, "log-level", "info", what+": debug, info, warn or error")
	CompleteValues(cmd, map[string][]string{"log-level": {"debug", "info", "warn", "error"}})
}

// Logger returns a logger that writes to w and redacts secrets.
func Logger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	switch strings.ToLower(level) { // Python's names
	case "warning":
		level = "warn"
	case "critical":
		level = "error"
	}
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, hint.With(fmt.Errorf("unknown log level %q", level), "use debug, info, warn or error")
	}
	return LoggerAt(w, l), nil
}

// LoggerAt is Logger for a known level.
func LoggerAt(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(Secrets.Writer(w), &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case "method", "tool", "upstream", "namespace", "id":
			if a.Value.Kind() == slog.KindString {
				a.Value = slog.StringValue(display.Label(a.Value.String()))
			}
		}
		return a
	}}))
}

// AddTimeout adds --timeout, a duration or a number of milliseconds. what names the limited operation
// in the help, byDefault its default.
func AddTimeout(cmd *cobra.Command, timeout *time.Duration, what, byDefault string) {
	cmd.Flags().Func("timeout", "how long "+what+" may take, a `duration` such as 10s, or a number of milliseconds ("+byDefault+")", func(text string) error {
		d, err := time.ParseDuration(text)
		if n, plain := strconv.Atoi(text); plain == nil {
			d, err = time.Duration(n)*time.Millisecond, nil
		}
		if err != nil || d <= 0 {
			return errors.New("want a time like 10s or 500ms, or a number of milliseconds")
		}
		*timeout = d
		return nil
	})
}

// AtMost limits the number of arguments before "--".
func AtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			args = args[:dash]
		}
		if len(args) > n {
			return UnexpectedArgument(cmd, args[n])
		}
		return nil
	}
}

// NoArguments accepts no arguments, including those after "--".
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UnexpectedArgument(cmd, args[0])
	}
	return nil
}

// One accepts exactly one argument. missing is the error for no argument; how completes the command
// line in its hint.
func One(missing, how string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return hint.With(errors.New(missing), "%s %s", cmd.CommandPath(), how)
		case len(args) > 1:
			return UnexpectedArgument(cmd, args[1])
		}
		return nil
	}
}

// UnexpectedArgument returns the error for an argument that a verb does not accept.
func UnexpectedArgument(cmd *cobra.Command, arg string) error {
	if verbs := VerbsBelow(cmd); len(verbs) > 0 {
		err := fmt.Errorf("unknown command %q of %s", arg, cmd.CommandPath())
		if near := nearest.Word(arg, verbs); near != "" {
			return hint.With(err, "did you mean %s %s?", cmd.CommandPath(), near)
		}
		return hint.With(err, "it has %s", strings.Join(verbs, ", "))
	}
	return hint.With(fmt.Errorf("unexpected argument %q", arg), "%s --help shows its usage", cmd.CommandPath())
}

// VerbsBelow returns the names of the verbs below a command that its help shows.
func VerbsBelow(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
