package entries

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/editfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/mask"
)

// Remove removes servers from a config.
var Remove = cli.Verb{
	Use:     "remove NAME…",
	Group:   cli.SetUp,
	Aliases: []string{"rm"},
	Short:   "Remove servers from the config file",
	Long: `Remove servers from the config file, with the comments that belong to them.
Everything else in the file stays as it is, and the old file is kept with the
suffix .bak.`,
	Example: `  dynmcp remove git`,
	Args: func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return hint.With(errors.New("no server given"), "dynmcp ls lists them")
		}
		return nil
	},
	New: func(cmd *cobra.Command) cli.Run {
		var choice conf.Choice
		choice.Add(cmd, "remove them from")
		cmd.ValidArgsFunction = func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			path, err := choice.File()
			file, missing := editfile.OpenConfig(path)
			if err != nil || missing != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			entries, _ := schema.Entries(file.Path, file.Old) // none, if the file is broken
			return editfile.EntryNames(entries), cobra.ShellCompDirectiveNoFileComp
		}
		dryRun := cmd.Flags().Bool("dry-run", false, "show the diff and write nothing")
		return func(cmd *cobra.Command, args []string) error {
			path, err := choice.File()
			if err != nil {
				return err
			}
			choice.Say(cli.Stderr(cmd), path)
			return runRemove(cli.Stdout(cmd), path, args, *dryRun)
		}
	},
}

func runRemove(out *terminal.Writer, config string, names []string, dryRun bool) error {
	file, unlock, err := editfile.LockConfig(config)
	if err != nil {
		return err
	}
	defer unlock()
	entries, err := schema.Entries(file.Path, file.Old)
	if err != nil {
		return err
	}
	text := file.Old
	for _, name := range names {
		if has := editfile.EntryNames(entries); !slices.Contains(has, name) {
			return hint.With(cli.MessageError(fmt.Sprintf("Unknown server %q in %s", name, file.Name())), "it has %s", cmp.Or(strings.Join(has, ", "), "no servers"))
		}
		if text, err = schema.RemoveServer(file.Path, text, name); err != nil {
			return err
		}
	}
	if dryRun {
		editfile.ShowDiff(out, file.Path, file.Old, text, mask.File)
		return out.Err
	}
	if err := file.Replace(text); err != nil {
		return err
	}
	for _, name := range names {
		out.Printf("Removed %q from %s\n", name, file.Name())
	}
	return out.Err
}
