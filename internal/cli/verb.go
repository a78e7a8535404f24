// Package cli holds code that all verbs of the command line share: declarations, output, interruption,
// and errors for wrong arguments.
package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// Groups of verbs. Those of Develop are listed by the verb dev.
const (
	SetUp   = "Set up"
	Look    = "Look"
	Watch   = "Watch"
	Guard   = "Guard"
	Operate = "Run"
	Develop = "Develop"
)

// A Verb declares a command by its help and its constructor. A declaration has no state.
type Verb struct {
	Use, Short, Long, Example string

	Group    string // of the verbs in the help of the program; "" below another verb
	Hidden   bool   // it works, but help has another spelling for it
	Aliases  []string
	Args     cobra.PositionalArgs // nil for a verb without arguments
	Words    []string             // completions of arguments
	Complete cobra.CompletionFunc // completes arguments; without it and Words, shells complete files
	Verbs    []Verb               // subcommands

	// New adds the flags of the verb to its command, and returns the function that runs it. Without
	// it the verb prints its help.
	New func(cmd *cobra.Command) Run
}

// Run runs a verb.
type Run func(cmd *cobra.Command, args []string) error

// Command makes the command of a verb, with the context that New and Run get.
func (v Verb) Command(ctx context.Context) *cobra.Command {
	cmd := &cobra.Command{
		Use: v.Use, Short: v.Short, Long: v.Long, Example: v.Example, Aliases: v.Aliases, Hidden: v.Hidden,
		Args: v.Args, ValidArgs: v.Words, ValidArgsFunction: v.Complete,
	}
	cmd.SetContext(ctx)
	if cmd.Args == nil {
		cmd.Args = NoArguments
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	if v.New != nil {
		cmd.RunE = v.New(cmd)
	}
	for _, below := range v.Verbs {
		cmd.AddCommand(below.Command(ctx))
	}
	return cmd
}
