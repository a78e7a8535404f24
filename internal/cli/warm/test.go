// Package warm has the verbs test and warm, which start servers and list what they have.
package warm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/selfhost"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Test starts servers and lists their content.
var Test = cli.Verb{
	Use:   "test [flags] [name | server/tool…] [-- command args…]",
	Group: cli.Look,
	Short: "Start servers and list what they have",
	Long: `Start a server as a host would, list what it has, and stop it again. Without a
name, all servers of the config are tested at the same time, and each result is
printed as it comes, with the names of the tools. Tools are those that hosts see,
after the filters and aliases of the config.

With names of tools it says of each whether it can be called: its server starts and
lists it, and neither policy nor pins are against it. --wait tries again what failed.

The exit status is 1 if a server failed, or a tool cannot be called.`,
	Example: `  dynmcp test
  dynmcp test files --timeout 10s
  dynmcp test --store files git
  dynmcp test files/read_file github/create_issue --wait 10s
  dynmcp test -- npx -y @modelcontextprotocol/server-everything stdio`,
	Args: func(cmd *cobra.Command, args []string) error {
		if store, _ := cmd.Flags().GetBool("store"); store || areTools(args) {
			return nil
		}
		return cli.AtMost(1)(cmd, args)
	},
	New: func(cmd *cobra.Command) cli.Run {
		on := selfhost.Target{About: selfhost.OfServers}
		var asJSON, store bool
		var timeout, wait time.Duration
		cmd.Flags().BoolVar(&store, "store", false, "only keep what they list, so that their tools are found without starting them")
		cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
		cli.AddTimeout(cmd, &timeout, "a server", "default: its load_timeout")
		cmd.Flags().DurationVar(&wait, "wait", 0, "how `long` to wait for tools that cannot be called yet")
		cmd.ValidArgsFunction = conf.CompleteServers(&on.Flags, "")
		return on.Run(cmd, func(ctx context.Context, args []string) error {
			t := tester{Target: &on, linter: module.LinterOf(ctx, on.Cfg), timeout: timeout}
			switch {
			case store && !areTools(args):
				return WarmNamed(ctx, &on, args, timeout, asJSON)
			case areTools(args) && !on.Cfg.SingleWrap:
				return t.tools(ctx, args, wait, asJSON)
			case len(args) == 0 && !on.Cfg.SingleWrap:
				servers := conf.Wanted(on.Cfg)
				return t.all(ctx, servers, fmt.Sprintf("Testing all configured servers (%d)", len(servers)), asJSON)
			case on.Cfg.SingleWrap:
				args = conf.Names(on.Cfg.Servers)
			}
			return t.one(ctx, args[0], asJSON)
		})
	},
}

// A tester tests servers, each with its own aggregator.
type tester struct {
	*selfhost.Target
	linter  module.Linter
	timeout time.Duration             // 0 leaves it to load_timeout
	check   func(schema.Server) error // an additional check of a listed server; may be nil
}

// A testResult is the result of testing one server.
type testResult struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	Result    string   `json:"result"` // PASS or FAIL
	Error     string   `json:"error,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	Refused   string   `json:"refused,omitempty"` // accesses that the sandbox refused
	Server    string   `json:"server,omitempty"`  // name and version that it reports
	Protocol  string   `json:"protocol,omitempty"`
	Seconds   float64  `json:"seconds"`
	Tools     []string `json:"tools"`
	Resources []string `json:"resources,omitempty"`
	Templates []string `json:"resourceTemplates,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

const (
	pass = "PASS"
	fail = "FAIL"
)

func (t *tester) test(ctx context.Context, s schema.Server) testResult {
	r := testResult{Name: s.Name, Transport: s.Transport, Result: pass, Tools: []string{}}
	began := time.Now()
	view, err := t.list(ctx, s, &r.Seconds)
	if err == nil && t.check != nil {
		err = t.check(s)
	}
	if err != nil {
		r.Seconds = secondsSince(began)
		f := selfhost.Explain(err, t.timeout)
		r.Result, r.Error, r.Hint, r.Stderr = fail, f.Text, f.Hint, f.Stderr
		if l := module.LauncherOf(ctx); l != nil {
			r.Refused = cli.Secrets.String(l.Explain(ctx, s))
		}
		return r
	}
	status, _ := view.Server(s.Name)
	r.Protocol = status.Protocol
	var info struct{ Name, Version string }
	if json.Unmarshal(status.Info, &info) == nil && info.Name != "" {
		r.Server = info.Name
		if info.Version != "" {
			r.Server += " " + info.Version
		}
	}
	for _, tool := range view.ServerTools(s.Name) {
		r.Tools = append(r.Tools, tool.Leaf)
	}
	r.Resources = members(view.Resources(), "uri")
	r.Templates = members(view.Templates(), "uriTemplate")
	r.Prompts = members(view.Prompts(), "name")
	r.Warnings = slices.Concat(view.Collisions(), view.Warnings(), t.linter.Lint(view, false))
	if warning, _ := conf.Unlimited(ctx, s); warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	return r
}

// list starts a server, returns its listing, and stops it again. It sets seconds to the duration of
// the start.
func (t *tester) list(ctx context.Context, s schema.Server, seconds *float64) (*catalog.View, error) {
	began := time.Now()
	if t.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}
	h, err := selfhost.Start(ctx, selfhost.OnlyServers(t.Cfg, s.Name), t.Log)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	if err := h.LoadOne(ctx, s.Name); err != nil {
		return nil, err
	}
	*seconds = secondsSince(began)
	return h.View(), nil
}

// secondsSince returns the seconds since began, rounded to tenths.
func secondsSince(began time.Time) float64 {
	return math.Round(time.Since(began).Seconds()*10) / 10
}

func members(objects []json.RawMessage, key string) []string {
	var values []string
	for _, object := range objects {
		if value, _ := wire.Text(wire.Get(object, key)); value != "" {
			values = append(values, value)
		}
	}
	return values
}

func (t *tester) one(ctx context.Context, name string, asJSON bool) error {
	s, err := conf.ServerNamed(t.Cfg, name)
	if err != nil {
		return err
	}
	if !asJSON {
		t.Out.Heading(fmt.Sprintf("Testing %q", name))
	}
	waiting := terminal.ShowProgress(t.ErrOut, "starting "+name)
	result := t.test(ctx, s)
	waiting.End()
	if ctx.Err() != nil {
		return cli.ErrInterrupted
	}
	if asJSON {
		err = terminal.WriteJSON(t.Out, result)
	} else {
		result.write(t.Out)
	}
	if result.Result == fail {
		return fmt.Errorf("%s failed", name)
	}
	return cmp.Or(t.Out.Err, err)
}

func (r *testResult) write(out *terminal.Writer) {
	if r.Result == pass {
		connected := "Connected and initialized"
		if r.Server != "" {
			connected += ": " + terminal.OneLine(r.Server)
		}
		out.Say("%s, protocol %s (%.1f s)", connected, r.Protocol, r.Seconds)
		for _, section := range []struct {
			title string
			names []string
		}{
			{"Tools", r.Tools},
			{"Resources", r.Resources},
			{"Resource templates", r.Templates},
			{"Prompts", r.Prompts},
			{"Warnings", r.Warnings},
		} {
			if len(section.names) > 0 {
				out.Printf("\n")
				out.Heading(fmt.Sprintf("%s (%d):", section.title, len(section.names)))
			}
			for _, name := range section.names {
				out.Printf("  %s\n", terminal.OneLine(name))
			}
		}
	}
	out.Printf("\nResult: ")
	r.writeResult(out, "", "")
}

// writeResult prints PASS or FAIL, followed by more, and below it the reason of a failure.
func (r *testResult) writeResult(out *terminal.Writer, more, indent string) {
	out.Paint(map[string]terminal.Colour{pass: terminal.Green, fail: terminal.Red}[r.Result], r.Result)
	out.Printf("%s\n", more)
	for _, text := range []string{r.Error, r.Refused} {
		if text != "" {
			out.Printf("%s\n", terminal.Indent(out.Fold(text, len(indent)), indent))
		}
	}
	out.Failure(indent, r.Stderr, r.Hint)
}

// maxParallel limits the servers that are tested at the same time, and with them the load of the
// machine.
const maxParallel = 8

// all tests servers. It prints results as they arrive, or as JSON in the order of servers.
func (t *tester) all(ctx context.Context, servers []schema.Server, heading string, asJSON bool) error {
	conf.SayIfEmpty(t.ErrOut, t.Cfg)
	if !asJSON {
		t.Out.Heading(heading)
		t.Out.Printf("\n")
	}
	waiting, ready := terminal.ShowStarting(t.ErrOut, conf.Names(servers))
	defer waiting.End()
	var group errgroup.Group
	group.SetLimit(maxParallel)
	var mu sync.Mutex
	all := testSummary{Results: make([]testResult, len(servers))}
	for i, s := range servers {
		group.Go(func() error {
			r := t.test(ctx, s)
			if ctx.Err() != nil {
				return cli.ErrInterrupted
			}
			mu.Lock()
			defer mu.Unlock()
			ready(s.Name)
			all.Results[i] = r
			if !asJSON {
				waiting.Above(func() { r.writeLine(t.Out) })
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	waiting.End()
	return all.write(t.Out, asJSON)
}

// write prints how many servers passed, or all results as JSON. It returns an error if some failed.
func (s *testSummary) write(out *terminal.Writer, asJSON bool) error {
	for _, r := range s.Results {
		if r.Result == pass {
			s.Summary.Passed++
		} else {
			s.Summary.Failed++
		}
	}
	if asJSON {
		if err := terminal.WriteJSON(out, s); err != nil {
			return err
		}
	} else {
		out.Printf("\nSummary: %d passed, %d failed\n", s.Summary.Passed, s.Summary.Failed)
	}
	switch {
	case s.Summary.Failed == 1 && len(s.Results) == 1:
		return fmt.Errorf("%s failed", s.Results[0].Name)
	case s.Summary.Failed > 0:
		return fmt.Errorf("%d of %d servers failed", s.Summary.Failed, len(s.Results))
	}
	return out.Err
}

// writeLine prints a short result: counts, time, and the names of the tools.
func (r *testResult) writeLine(out *terminal.Writer) {
	head := fmt.Sprintf("%s (%s) ... ", r.Name, r.Transport)
	out.Printf("%s", head)
	found := ""
	if r.Result == pass {
		found = display.Plural(len(r.Tools), "tool") + ", "
		if n := len(r.Resources) + len(r.Templates); n > 0 {
			found += display.Plural(n, "resource") + ", "
		}
		if n := len(r.Prompts); n > 0 {
			found += display.Plural(n, "prompt") + ", "
		}
		found += "protocol " + r.Protocol + ", "
	}
	more := fmt.Sprintf("  %s%.1f s", found, r.Seconds)
	if out.Width > 0 && terminal.Columns(head+r.Result+more) > out.Width {
		more = "\n" + terminal.Indent(out.Fold(strings.TrimSpace(more), 2), "  ")
	}
	r.writeResult(out, more, "  ")
	if len(r.Tools) > 0 {
		out.Printf("%s\n", terminal.Indent(out.Fold(terminal.OneLine(strings.Join(r.Tools, ", ")), 2), "  "))
	}
	for _, w := range r.Warnings {
		out.Printf("%s\n", terminal.Indent(out.Fold("warning: "+terminal.OneLine(w), 2), "  "))
	}
}

// A testSummary is the result of testing all servers.
type testSummary struct {
	Summary struct {
		Passed int `json:"passed"`
		Failed int `json:"failed"`
	} `json:"summary"`
	Results []testResult `json:"results"`
}
