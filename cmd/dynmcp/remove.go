package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/schema"
)

func removeCommand() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use:     "remove NAME…",
		Aliases: []string{"rm"},
		Short:   "Remove servers from the config file",
		Long: `Remove servers from the config file, with the comments that belong to them. All
else in the file stays as it is; its old text is kept with .bak at the end of its
name.`,
		Example: `  dynmcp remove git`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return hinted(errors.New("no server is named"), "dynmcp ls lists them")
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return configNames(config), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRemove(stdout(cmd), config, args)
		},
	}
	cmd.Flags().StringVarP(&config, "config", "c", "", "the config `file` (default: the one in the working directory)")
	return cmd
}

func runRemove(out *screen, config string, names []string) error {
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
		if !hasEntry(entries, name) {
			return hinted(sentence(fmt.Sprintf("Unknown MCP %q in %s", name, file.name())), "it has %s", listNames(entries))
		}
		if text, err = schema.RemoveServer(file.path, text, name); err != nil {
			return err
		}
	}
	if err := file.replace(text); err != nil {
		return err
	}
	for _, name := range names {
		out.printf("Removed %q from %s\n", name, file.name())
	}
	return nil
}

func hasEntry(entries []schema.Entry, name string) bool {
	for _, e := range entries {
		if e.Name == name {
			return true
		}
	}
	return false
}

func listNames(entries []schema.Entry) string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	if len(names) == 0 {
		return "no servers"
	}
	return strings.Join(names, ", ")
}

// configNames are the servers of a config file, for the shell to complete.
func configNames(config string) []string {
	file, err := openConfig(config)
	if err != nil {
		return nil
	}
	entries, err := schema.Entries(file.path, file.old)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}
