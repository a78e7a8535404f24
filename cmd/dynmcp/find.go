package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/catalog"
	"dynmcp/schema"
)

func findCommand() *cobra.Command {
	var on target
	var only string
	var limit int
	var asJSON bool
	cmd := on.command(&cobra.Command{
		Use:   "find [flags] <words…> [-- command args…]",
		Short: "Search the tools of all servers",
		Long: `Start the servers and search their tools, as the model does with discover_tool.
The best matches come first. A server that cannot be started is reported on
stderr, and the others are searched.

The exit status is 1 if nothing was found.`,
		Example: `  dynmcp find read a file
  dynmcp find --server git commit history --limit 3`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, words []string) error {
		query := strings.Join(words, " ")
		if strings.TrimSpace(query) == "" {
			return hinted(errors.New("no search words given"), "dynmcp find read a file")
		}
		servers := enabled(on.cfg)
		if only != "" {
			s, err := serverNamed(on.cfg, only)
			if err != nil {
				return err
			}
			servers = []schema.Server{s}
		}
		matches, err := find(ctx, &on, names(servers), query, limit)
		if err != nil {
			return err
		}
		return writeMatches(on.out, matches, asJSON)
	})
	cmd.Flags().StringVar(&only, "server", "", "start and search only this `server`")
	cmd.Flags().IntVar(&limit, "limit", 10, "show at most this many tools")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	// The error is about a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("server", completeServers(&on.configFlags, ""))
	return cmd
}

// find starts servers and searches those that started.
func find(ctx context.Context, on *target, servers []string, query string, limit int) ([]catalog.Match, error) {
	h, failed, err := on.start(ctx, servers...)
	if err != nil {
		return nil, err
	}
	defer h.close()
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	for _, name := range servers {
		if failed[name] != nil {
			report(secrets.Writer(on.errOut), fmt.Errorf("not searched: %w", failed[name]))
		}
	}
	if len(failed) == len(servers) && len(servers) > 0 {
		return nil, errors.New("no server could be searched")
	}
	matches := h.agg.View().Find(query, limit)
	if len(matches) == 0 {
		return nil, hinted(fmt.Errorf("no tool matches %q", query), "try other words, or dynmcp test to list everything")
	}
	return matches, nil
}

func writeMatches(out *terminal, matches []catalog.Match, asJSON bool) error {
	type result struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	var results []result
	t := table{header: []string{"TOOL", "DESCRIPTION"}, shrink: 1}
	for _, m := range matches {
		results = append(results, result{m.Tool.Name, m.Tool.Summary})
		t.rows = append(t.rows, []string{m.Tool.Name, m.Tool.Summary})
	}
	if asJSON {
		return writeJSON(out, results)
	}
	t.write(out)
	return out.err
}
