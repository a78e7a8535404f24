// Command dynmcp stands between an MCP host and many upstream MCP servers.
//
// verbs.go is the table of its verbs, modules.go that of its modules. Package stdio serves a host
// when there is no verb.
package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/process"
	"github.com/dynmcp/dynmcp/internal/cli/runs"
	"github.com/dynmcp/dynmcp/internal/cli/stdio"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/transports"
)

// generator is a verb that writes files, in builds with the tag man or keys; otherwise nil.
var generator func(root *cobra.Command) *cobra.Command

func main() {
	process.EndWithLaunchers()
	process.TuneMemory()
	process.NoCore()
	err := rootCommand().Execute()
	var stopped *cli.Interruption
	switch {
	case errors.As(err, &stopped): // already reported
		os.Exit(stopped.Status())
	case err != nil:
		report(terminal.New(os.Stderr), runs.Explain(err))
		os.Exit(1)
	}
}

func rootCommand() *cobra.Command {
	ctx := module.With(context.Background(), modules)
	cmd := stdio.Verb.Command(ctx)
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	cmd.Version = cli.Version
	cmd.SetVersionTemplate("dynmcp {{.Version}}\n")
	addVerbs(cmd)
	if generator != nil {
		cmd.AddCommand(generator(cmd))
	}
	cmd.SetFlagErrorFunc(func(verb *cobra.Command, err error) error {
		return hint.With(err, "%s --help lists the flags", verb.CommandPath())
	})
	fixCompletion(cmd)
	wrapHelp(cmd)
	if len(os.Args) > 1 && os.Args[1] == cobra.ShellCompRequestCmd {
		plainFlagTexts(cmd)
	}
	return cmd
}

// addVerbs adds all verbs to the root. Help lists those of Develop below the verb dev, and they work without it.
func addVerbs(root *cobra.Command) {
	ctx := root.Context()
	all := slices.Clone(verbs)
	for _, m := range modules {
		all = append(all, m.Verbs...)
	}
	dev := cli.Verb{
		Use:   "dev",
		Short: "List the verbs for servers' authors and operators",
		Long:  "List the verbs for authors of servers, and for operators of a gateway.\nEach works without the word dev, too.",
	}
	for _, title := range []string{cli.SetUp, cli.Look, cli.Watch, cli.Guard, cli.Operate, cli.Develop} {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	}
	for _, verb := range all {
		if verb.Group == cli.Develop {
			dev.Verbs = append(dev.Verbs, verb)
			verb.Hidden = true
		}
		cmd := verb.Command(ctx)
		cmd.GroupID = verb.Group
		root.AddCommand(cmd)
	}
	root.SetHelpCommandGroupID(cli.Develop)
	cmd := dev.Command(ctx)
	cmd.GroupID = cli.Develop
	root.AddCommand(cmd)
}

// report shows an error to a person: what is wrong, the last lines of a child that failed,
// and a hint.
func report(out *terminal.Writer, err error) {
	text, advice := hint.Plain(err)
	out.Labelled(terminal.Red, "dynmcp: ", cli.Secrets.String(text))
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		if failure.Stderr != "" {
			out.Printf("last lines of its stderr:\n%s\n", cli.Secrets.String(terminal.Indent(failure.Stderr, "  ")))
		}
		if failure.Hint != "" {
			out.Labelled(terminal.Yellow, "hint: ", cli.Secrets.String(failure.Hint))
		}
	}
	if advice != "" {
		out.Labelled(terminal.Yellow, "hint: ", cli.Secrets.String(advice))
	}
}
