package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/hint"
	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

func testCommand() *cobra.Command {
	var on target
	var asJSON bool
	var timeout milliseconds
	cmd := on.command(&cobra.Command{
		Use:   "test [flags] [name] [-- command args…]",
		Short: "Start servers and list what they have",
		Long: `Start a server as a host would, list what it has, and stop it again. Without a
name, all servers of the config are tested at the same time, and each result is
printed as it comes, with the names of the tools. Tools are those that hosts see,
after the filters and aliases of the config.

The exit status is 1 if a server failed.`,
		Example: `  dynmcp test
  dynmcp test files --timeout 10s
  dynmcp test -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: completeServers(&on.configFlags, ""),
	}, func(ctx context.Context, args []string) error {
		t := tester{target: &on, timeout: time.Duration(timeout)}
		switch {
		case len(args) == 0 && !on.cfg.SingleWrap:
			servers := wanted(on.cfg)
			return t.all(ctx, servers, fmt.Sprintf("Testing all configured upstreams (%d)", len(servers)), asJSON)
		case on.cfg.SingleWrap:
			args = names(on.cfg.Servers)
		}
		return t.one(ctx, args[0], asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	timeout.add(cmd)
	return cmd
}

// milliseconds is a duration that may be written as a plain number.
type milliseconds time.Duration

func (m *milliseconds) add(cmd *cobra.Command) {
	cmd.Flags().Var(m, "timeout", "how long a server may take, like 10s or in `milliseconds` (default: its load_timeout)")
}

func (m *milliseconds) Type() string { return "duration" }

func (m *milliseconds) String() string {
	if *m == 0 {
		return ""
	}
	return time.Duration(*m).String()
}

func (m *milliseconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if n, plain := strconv.Atoi(text); plain == nil {
		d, err = time.Duration(n)*time.Millisecond, nil
	}
	if err != nil || d <= 0 {
		return errors.New("want a time like 10s or 500ms, or a number of milliseconds")
	}
	*m = milliseconds(d)
	return nil
}

// A tester tests servers, each in a dynmcp of its own.
type tester struct {
	*target
	timeout time.Duration             // 0 leaves it to load_timeout
	check   func(schema.Server) error // what else must hold of one that was listed; may be nil
}

// A testResult is the result of testing one server.
type testResult struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	Result    string   `json:"result"` // PASS or FAIL
	Error     string   `json:"error,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	Server    string   `json:"server,omitempty"` // its name and version
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
		f := explain(err, t.timeout)
		r.Result, r.Error, r.Hint, r.Stderr = fail, f.text, f.hint, f.stderr
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
	r.Warnings = append(view.Collisions(), view.Warnings()...)
	return r
}

// list starts a server, returns what it lists, and stops it again. It notes how
// long the start took.
func (t *tester) list(ctx context.Context, s schema.Server, seconds *float64) (*catalog.View, error) {
	began := time.Now()
	if t.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}
	h, err := startSelf(ctx, onlyServers(t.cfg, s.Name), t.log)
	if err != nil {
		return nil, err
	}
	defer h.close()
	if err := h.loadOne(ctx, s.Name); err != nil {
		return nil, err
	}
	*seconds = secondsSince(began)
	return h.agg.View(), nil
}

// secondsSince returns tenths of seconds, as they are printed.
func secondsSince(began time.Time) float64 {
	return math.Round(time.Since(began).Seconds()*10) / 10
}

// An explanation is why a server cannot be used, without its name.
type explanation struct{ text, hint, stderr string }

// explain takes apart why a server, which had timeout, did not start.
func explain(err error, timeout time.Duration) explanation {
	why := explanation{text: err.Error()}
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		why = explanation{failure.Cause.Error(), failure.Hint, failure.Stderr}
		if failure.Code == transports.CodeAuthRequired {
			why.text = "auth required: " + why.text
			if command, ok := strings.CutPrefix(failure.Hint, `run "dynmcp login `); ok {
				why.text = fmt.Sprintf("auth required: run `dynmcp login %s (%v)", strings.Replace(command, `"`, "`", 1), failure.Cause)
				why.hint = ""
			}
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		why.text = fmt.Sprintf("timed out after %dms", timeout.Milliseconds())
		why.hint = "raise --timeout to give it more time"
	}
	if with, ok := errors.AsType[*hint.Error](err); ok {
		why.hint = with.Hint
	}
	return explanation{secrets.String(why.text), secrets.String(why.hint), secrets.String(why.stderr)}
}

// members returns a member, a string, of each of some objects.
func members(objects []json.RawMessage, key string) []string {
	var values []string
	for _, object := range objects {
		if value := member(object, key); value != "" {
			values = append(values, value)
		}
	}
	return values
}

func (t *tester) one(ctx context.Context, name string, asJSON bool) error {
	s, err := serverNamed(t.cfg, name)
	if err != nil {
		return err
	}
	if !asJSON {
		t.out.Heading(fmt.Sprintf("Testing %q", name))
	}
	waiting := terminal.ShowProgress(t.errOut, "starting "+name)
	result := t.test(ctx, s)
	waiting.End()
	if ctx.Err() != nil {
		return errInterrupted
	}
	if asJSON {
		err = terminal.WriteJSON(t.out, result)
	} else {
		result.write(t.out)
	}
	if result.Result == fail {
		return fmt.Errorf("%s failed", name)
	}
	return cmp.Or(t.out.Err, err)
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

// writeResult prints PASS or FAIL and what else there is to say in that line, why
// the server failed, and what to do.
func (r *testResult) writeResult(out *terminal.Writer, more, indent string) {
	c := terminal.Green
	if r.Result == fail {
		c = terminal.Red
	}
	out.Paint(c, r.Result)
	out.Printf("%s\n", more)
	if r.Error != "" {
		out.Printf("%s\n", terminal.Indent(out.Fold(r.Error, len(indent)), indent))
	}
	out.Failure(indent, r.Stderr, r.Hint)
}

// maxParallel is how many servers are tested at the same time: enough not to wait
// for each, few enough not to stall the machine.
const maxParallel = 8

// all tests servers. Results are printed as they come; in JSON they are in the order
// of servers.
func (t *tester) all(ctx context.Context, servers []schema.Server, heading string, asJSON bool) error {
	if !asJSON {
		t.out.Heading(heading)
		t.out.Printf("\n")
	}
	waiting, ready := terminal.ShowStarting(t.errOut, names(servers))
	defer waiting.End()
	var group errgroup.Group
	group.SetLimit(maxParallel)
	var mu sync.Mutex
	all := testSummary{Results: make([]testResult, len(servers))}
	for i, s := range servers {
		group.Go(func() error {
			r := t.test(ctx, s)
			if ctx.Err() != nil {
				return errInterrupted
			}
			mu.Lock()
			defer mu.Unlock()
			ready(s.Name)
			all.Results[i] = r
			if !asJSON {
				waiting.Above(func() { r.writeLine(t.out) })
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	waiting.End()
	return all.write(t.out, asJSON)
}

// write prints how many servers passed, or all results as JSON. That some failed is an
// error.
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

// writeLine prints the result of one server of many: how much it has, how long it
// took, and the names of its tools.
func (r *testResult) writeLine(out *terminal.Writer) {
	head := fmt.Sprintf("%s (%s) ... ", r.Name, r.Transport)
	out.Printf("%s", head)
	found := ""
	if r.Result == pass {
		found = count(len(r.Tools), "tool") + ", "
		if n := len(r.Resources) + len(r.Templates); n > 0 {
			found += count(n, "resource") + ", "
		}
		if n := len(r.Prompts); n > 0 {
			found += count(n, "prompt") + ", "
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
