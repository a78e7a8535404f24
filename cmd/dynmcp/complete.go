package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completeServers completes names of servers of the config, with something after
// them.
func completeServers(t *configFlags, suffix string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		cfg, err := t.load(cmd.Context())
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, s := range cfg.Servers {
			words = append(words, cobra.CompletionWithDesc(s.Name+suffix, s.Description))
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if suffix != "" {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return words, directive
	}
}

// completionWait is how long a shell that completes the name of a tool waits for
// its server.
const completionWait = 10 * time.Second

// completeTools completes names of servers and, after the slash, of the tools of
// that server, which it starts if it is not known from an earlier run.
func completeTools(on *target) cobra.CompletionFunc {
	servers := completeServers(&on.configFlags, "/")
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		name, _, ok := strings.Cut(word, "/")
		if !ok || len(args) > 0 {
			return servers(cmd, args, word)
		}
		const nothing = cobra.ShellCompDirectiveNoFileComp
		cfg, err := on.configFlags.load(cmd.Context())
		if err != nil {
			return nil, nothing
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionWait)
		defer cancel()
		h, err := startSelf(ctx, onlyServers(cfg, name), nil)
		if err != nil {
			return nil, nothing
		}
		defer h.close()
		if info, _ := h.agg.View().Server(name); !info.Stored && h.loadOne(ctx, name) != nil {
			return nil, nothing
		}
		var words []string
		for _, tool := range h.agg.View().ServerTools(name) {
			words = append(words, cobra.CompletionWithDesc(tool.Name, tool.Summary))
		}
		return words, nothing
	}
}

// completeValues completes the values of flags that take one of a few words.
func completeValues(cmd *cobra.Command, flags map[string][]string) {
	for name, values := range flags {
		// The error is about a flag that does not exist.
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// shells are those that the completion command writes scripts for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// refuseOtherShells makes a shell that completion does not know an error; cobra
// prints its help.
func refuseOtherShells(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args = func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return hinted(fmt.Errorf("no shell given"), "dynmcp completion bash; it knows %s", strings.Join(shells, ", "))
			case !slices.Contains(shells, args[0]):
				return hinted(fmt.Errorf("unknown shell %q", args[0]), "it knows %s", strings.Join(shells, ", "))
			}
			return nil
		}
		cmd.RunE = func(*cobra.Command, []string) error { return nil } // one of its commands runs instead
	}
}
