package warm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/schema"
)

// A toolResult says whether a tool can be called.
type toolResult struct {
	Name   string `json:"name"`
	Result string `json:"result"` // PASS or FAIL
	Note   string `json:"note,omitempty"`
	Error  string `json:"error,omitempty"`
	Hint   string `json:"hint,omitempty"`
}

// again is the time between two tests of a server whose tools are waited for.
const again = 500 * time.Millisecond

// tools tests whether tools can be called. For so long it tries again what failed.
func (t *tester) tools(ctx context.Context, names []string, wait time.Duration, asJSON bool) error {
	rules, err := rule.Of(t.Cfg)
	if err != nil {
		return err
	}
	results := make([]toolResult, len(names))
	of := map[string][]*toolResult{} // by server
	for i, name := range names {
		results[i] = toolResult{Name: name, Result: fail}
		if server, err := selfhost.ServerOfTool(t.Cfg, name); err != nil {
			results[i].fail(err)
		} else {
			of[server] = append(of[server], &results[i])
		}
	}
	waiting, ready := terminal.ShowStarting(t.ErrOut, slices.Sorted(maps.Keys(of)))
	defer waiting.End()
	until := time.Now().Add(wait)
	var group errgroup.Group
	group.SetLimit(maxParallel)
	for server, results := range of {
		group.Go(func() error {
			defer ready(server)
			for !t.tryTools(ctx, server, results, rules) && time.Until(until) > again && ctx.Err() == nil {
				select {
				case <-time.After(again):
				case <-ctx.Done():
				}
			}
			return nil
		})
	}
	_ = group.Wait() // the results have the errors
	waiting.End()
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	return writeTools(t.Out, results, asJSON)
}

// tryTools starts a server, and reports whether all these tools of it can be called.
func (t *tester) tryTools(ctx context.Context, server string, results []*toolResult, rules rule.Rules) bool {
	var seconds float64
	s, err := conf.ServerNamed(t.Cfg, server)
	var view *catalog.View
	if err == nil {
		view, err = t.list(ctx, s, &seconds)
	}
	passed := true
	for _, r := range results {
		if err != nil {
			r.fail(err)
		} else {
			r.judge(view, rules)
		}
		passed = passed && r.Result == pass
	}
	return passed
}

func (r *toolResult) fail(err error) {
	why := selfhost.Explain(err, 0)
	r.Result, r.Error, r.Hint = fail, why.Text, why.Hint
}

// judge looks for the tool among those that its server lists, and asks the policy.
func (r *toolResult) judge(view *catalog.View, rules rule.Rules) {
	*r = toolResult{Name: r.Name, Result: fail}
	tool, ok := view.Tool(r.Name)
	if !ok {
		r.fail(selfhost.UnknownTool(view, r.Name))
		return
	}
	may, says := rule.Preflight(rules, &rule.Call{Server: tool.Server, Tool: tool.Upstream, Class: tool.Class, Surface: schema.ExposeDiscover}, r.Name)
	if !may {
		r.Error = says
		return
	}
	r.Result, r.Note = pass, says
}

func writeTools(out *terminal.Writer, results []toolResult, asJSON bool) error {
	failed := 0
	for _, r := range results {
		if r.Result == fail {
			failed++
		}
	}
	if asJSON {
		if err := terminal.WriteJSON(out, map[string]any{"tools": results}); err != nil {
			return err
		}
	}
	for _, r := range results {
		if asJSON {
			break
		}
		out.Printf("%s ... ", terminal.OneLine(r.Name))
		line := testResult{Result: r.Result, Error: r.Error, Hint: r.Hint}
		more := ""
		if r.Note != "" {
			more = "  " + r.Note
		}
		line.writeResult(out, more, "  ")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tools cannot be called", failed, len(results))
	}
	return out.Err
}

// areTools reports whether words are names of tools.
func areTools(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(word, "/") })
}
