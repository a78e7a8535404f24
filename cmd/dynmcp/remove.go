package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

func removeCommand() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove servers from the config file",
		Long: `Remove servers from the config file, with the comments that belong to them.
Everything else in the file stays as it is, and the old file is kept with the
suffix .bak.`,
		Example: `  dynmcp remove git`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hinted(errors.New("no server given"), "dynmcp ls lists them")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			file, err := openConfig(config)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			entries, _ := schema.Entries(file.path, file.old) // none, if the file is broken
			return entryNames(entries), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRemove(stdout(cmd), config, args)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "the config `file` (default: the one in the working directory)")
	return cmd
}

func runRemove(out *terminal.Writer, config string, names []string) error {
	file, unlock, err := lockConfig(config)
	if err != nil {
		return err
	}
	defer unlock()
	text := file.old
	for _, name := range names {
		entries, err := schema.Entries(file.path, text)
		if err != nil {
			return err
		}
		if has := entryNames(entries); !slices.Contains(has, name) {
			if len(has) == 0 {
				has = []string{"no servers"}
			}
			return hinted(messageError(fmt.Sprintf("Unknown MCP %q in %s", name, file.name())), "it has %s", strings.Join(has, ", "))
		}
		if text, err = schema.RemoveServer(file.path, text, name); err != nil {
			return err
		}
	}
	if err := file.replace(text); err != nil {
		return err
	}
	for _, name := range names {
		out.Printf("Removed %q from %s\n", name, file.name())
	}
	return nil
}

func entryNames(entries []schema.Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}
