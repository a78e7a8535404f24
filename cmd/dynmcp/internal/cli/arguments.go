package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
)

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
	return hint.With(fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), arg), "%s --help shows its usage", cmd.CommandPath())
}
