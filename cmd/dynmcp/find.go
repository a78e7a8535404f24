package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"dynmcp/catalog"
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
The best matches come first. A server that cannot be started is named on
stderr and the others are searched.

The exit status is 1 if nothing was found.`,
		Example: `  dynmcp find read a file
  dynmcp find --server git commit history --limit 3`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, words []string) error {
		query := strings.Join(words, " ")
		if strings.TrimSpace(query) == "" {
			return hinted(errors.New("find what? no words were given"), "dynmcp find read a file")
		}
		servers := enabled(on.cfg)
		if only != "" {
			if _, err := serverOf(on.cfg, only); err != nil {
				return err
			}
			servers = []string{only}
		}
		matches, err := find(ctx, &on, servers, query, limit)
		if err != nil {
			return err
		}
		return writeMatches(on.out, matches, asJSON)
	})
	cmd.Flags().StringVar(&only, "server", "", "search this `server` alone; no other is started")
	cmd.Flags().IntVar(&limit, "limit", 10, "the most tools to show")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	// The error is about a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("server", completeServers(&on.configFlags, ""))
	return cmd
}

// find starts servers and searches those that are there then.
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

// A match is a tool as find shows it.
type match struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func writeMatches(s *screen, found []catalog.Match, asJSON bool) error {
	matches := []match{}
	t := table{header: []string{"TOOL", "DESCRIPTION"}, shrink: 1}
	for _, m := range found {
		matches = append(matches, match{m.Tool.Name, m.Tool.Summary})
		t.rows = append(t.rows, []string{m.Tool.Name, m.Tool.Summary})
	}
	if asJSON {
		return writeJSON(s, matches)
	}
	t.write(s)
	return s.err
}
