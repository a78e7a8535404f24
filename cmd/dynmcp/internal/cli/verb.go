// Package cli holds the code that all verbs of the command line share: their declaration, output,
// interruption, and errors for wrong arguments.
package cli

import "github.com/spf13/cobra"

// A Verb declares a command: its help, and its constructor. Commands are created for each run,
// so that a declaration has no state.
type Verb struct {
	Use, Short, Long, Example string

	Aliases  []string
	Args     cobra.PositionalArgs // nil for a verb without arguments
	Words    []string             // that arguments are completed with
	Complete cobra.CompletionFunc // completes arguments; with neither, files are offered
	Verbs    []Verb               // that follow its name

	// New adds the flags of the verb to its command, and returns the function that runs it.
	New func(cmd *cobra.Command) Run
}

// Run runs a verb.
type Run func(cmd *cobra.Command, args []string) error

// Command makes the command of a verb.
func (v Verb) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: v.Use, Short: v.Short, Long: v.Long, Example: v.Example, Aliases: v.Aliases,
		Args: v.Args, ValidArgs: v.Words, ValidArgsFunction: v.Complete,
	}
	if cmd.Args == nil {
		cmd.Args = NoArguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.RunE = v.New(cmd)
	for _, below := range v.Verbs {
		cmd.AddCommand(below.Command())
	}
	return cmd
}
