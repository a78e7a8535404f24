package call

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
)

// Find searches tools.
var Find = cli.Verb{
	Use:   "find [flags] WORDS… [-- command args…]",
	Group: cli.Look,
	Short: "Search the tools of all servers",
	Long: `Search the tools of all servers, as the model does with discover_tool. The best
matches come first; tools of several servers that have one name stay together
and count as one. Servers that were started before are searched as they were
then; the others are started, and those that cannot be are named on stderr.
dynmcp test --store starts and lists all again.

The exit status is 1 if nothing was found.`,
	Example: `  dynmcp find read a file
  dynmcp find --server git commit history --limit 3`,
	Args:     cobra.ArbitraryArgs,
	Complete: cobra.NoFileCompletions,
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{Stored: true}
		var only string
		on.AddServerFlag(cmd, &only)
		limit := cmd.Flags().IntP("limit", "n", 10, "show at most this `number` of tools")
		asJSON := cmd.Flags().Bool("json", false, "print a JSON array")
		return on.Run(cmd, func(ctx context.Context, words []string) error {
			return runFind(ctx, &on, strings.Join(words, " "), only, *limit, *asJSON)
		})
	},
}

func runFind(ctx context.Context, t *selfhost.Target, query, only string, limit int, asJSON bool) error {
	if strings.TrimSpace(query) == "" {
		return hint.With(errors.New("no search words given"), "dynmcp find read a file")
	}
	if limit < 1 {
		return fmt.Errorf("--limit %d: want a number from 1 on", limit)
	}
	h, err := t.StartSome(ctx, only)
	if err != nil {
		return err
	}
	defer h.Close()
	conf.SayIfEmpty(t.ErrOut, t.Cfg)
	matches, _ := h.View().FindIn(only, query, limit)
	if len(matches) == 0 {
		return hint.With(fmt.Errorf("no tool matches %q", query), "try other words, or dynmcp test to list everything")
	}
	return writeMatches(t.Out, matches, asJSON)
}

func writeMatches(out *terminal.Writer, matches []catalog.Match, asJSON bool) error {
	type result struct {
		Name        string   `json:"name"`
		Also        []string `json:"also,omitempty"` // tools of the same name of other servers
		Description string   `json:"description"`
	}
	var results []result
	t := terminal.Table{Header: []string{"TOOL", "DESCRIPTION"}, Shrink: 1}
	for _, m := range matches {
		r := result{Name: m.Tool.Name, Description: m.Tool.Summary}
		t.Rows = append(t.Rows, []string{m.Tool.Name, m.Tool.Summary})
		for _, other := range m.Also {
			r.Also = append(r.Also, other.Name)
			t.Rows = append(t.Rows, []string{"  " + other.Name, other.Summary})
		}
		results = append(results, r)
	}
	if asJSON {
		return terminal.WriteJSON(out, results)
	}
	t.Write(out)
	return out.Err
}
