package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"dynmcp/catalog"
	"dynmcp/schema"
	"dynmcp/transports"
)

func testCommand() *cobra.Command {
	var on target
	var asJSON bool
	var timeout milliseconds
	cmd := on.command(&cobra.Command{
		Use:   "test [flags] [name] [-- command args…]",
		Short: "Start servers and list what they have",
		Long: `Start a server as a host would, list what it has, and stop it again. Without a
name, all servers of the config are tested at the same time. Tools are those that
hosts see, after the filters and aliases of the config.

The exit status is 1 if a server failed.`,
		Example: `  dynmcp test
  dynmcp test files --timeout 10s
  dynmcp test -- npx -y @modelcontextprotocol/server-everything stdio`,
		Args:              atMost(1),
		ValidArgsFunction: completeServers(&on.configFlags, ""),
	}, func(ctx context.Context, args []string) error {
		t := tester{&on, time.Duration(timeout)}
		switch {
		case len(args) == 0 && !on.cfg.SingleWrap:
			return t.all(ctx, asJSON)
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
	timeout time.Duration // 0 leaves it to load_timeout
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
	view, err := t.list(ctx, s)
	if err != nil {
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

// list starts a server, returns what it lists, and stops it again.
func (t *tester) list(ctx context.Context, s schema.Server) (*catalog.View, error) {
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
	return h.agg.View(), nil
}

// An explanation is why a server cannot be used, without its name.
type explanation struct{ text, hint, stderr string }

// explain takes apart why a server, which had timeout, did not start.
func explain(err error, timeout time.Duration) explanation {
	why := explanation{text: err.Error()}
	var failure *transports.Failure
	if errors.As(err, &failure) {
		why = explanation{failure.Cause.Error(), failure.Hint, failure.Stderr}
		if failure.Code == transports.CodeAuthRequired {
			why.text = "auth required: " + why.text
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		why.text = fmt.Sprintf("timed out after %dms", timeout.Milliseconds())
		why.hint = "raise --timeout to give it more time"
	}
	var hint *hintError
	if errors.As(err, &hint) {
		why.hint = hint.hint
	}
	return explanation{secrets.String(why.text), secrets.String(why.hint), secrets.String(why.stderr)}
}

// members returns a member, a string, of each of some objects.
func members(objects []json.RawMessage, key string) []string {
	var values []string
	for _, object := range objects {
		var fields map[string]json.RawMessage
		var value string
		if json.Unmarshal(object, &fields) == nil && json.Unmarshal(fields[key], &value) == nil {
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
		t.out.printf("Testing %q\n", name)
	}
	waiting := showProgress(t.errOut, "starting "+name)
	result := t.test(ctx, s)
	waiting.end()
	if asJSON {
		err = writeJSON(t.out, result)
	} else {
		result.write(t.out)
	}
	if result.Result == fail {
		return fmt.Errorf("%s failed", name)
	}
	return cmp.Or(t.out.err, err)
}

func (r *testResult) write(out *terminal) {
	if r.Result == pass {
		out.printf("Connected and initialized")
		if r.Server != "" {
			out.printf(": %s", oneLine(r.Server))
		}
		out.printf(", protocol %s\n", r.Protocol)
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
				out.printf("\n%s (%d):\n", section.title, len(section.names))
			}
			for _, name := range section.names {
				out.printf("  %s\n", oneLine(name))
			}
		}
	}
	out.printf("\nResult: ")
	r.writeResult(out, "")
}

// writeResult prints PASS or FAIL, why the server failed, and what to do.
func (r *testResult) writeResult(out *terminal, indent string) {
	c := green
	if r.Result == fail {
		c = red
	}
	out.paint(c, r.Result)
	out.printf("\n")
	if r.Error != "" {
		out.printf("%s\n", indented(r.Error, indent))
	}
	if r.Stderr != "" {
		out.printf("%slast lines of its stderr:\n%s\n", indent, indented(r.Stderr, indent+"  "))
	}
	if r.Hint != "" {
		out.printf("%s\n", indented("hint: "+r.Hint, indent))
	}
}

// maxParallel is how many servers are tested at the same time: enough not to wait
// for each, few enough not to stall the machine.
const maxParallel = 8

func (t *tester) all(ctx context.Context, asJSON bool) error {
	servers := enabled(t.cfg)
	if !asJSON {
		t.out.printf("Testing all configured upstreams (%d)\n\n", len(servers))
	}
	results := make([]chan testResult, len(servers)) // reported in config order
	slots := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range servers {
		results[i] = make(chan testResult, 1)
	}
	wg.Go(func() {
		for i, s := range servers {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				results[i] <- t.test(ctx, s)
			})
		}
	})
	waiting := showProgress(t.errOut, "")
	defer waiting.end()
	var all testSummary
	all.Results = []testResult{}
	for i, s := range servers {
		waiting.say(fmt.Sprintf("%d of %d: starting %s", i+1, len(servers), s.Name))
		r := <-results[i]
		waiting.clear()
		all.Results = append(all.Results, r)
		if r.Result == pass {
			all.Summary.Passed++
		} else {
			all.Summary.Failed++
		}
		if !asJSON {
			t.out.printf("%s (%s) ... ", r.Name, strings.Join(slices.DeleteFunc([]string{r.Transport, r.Protocol}, func(s string) bool { return s == "" }), ", "))
			r.writeResult(t.out, "  ")
		}
	}
	waiting.end()
	if asJSON {
		if err := writeJSON(t.out, all); err != nil {
			return err
		}
	} else {
		t.out.printf("\nSummary: %d passed, %d failed\n", all.Summary.Passed, all.Summary.Failed)
	}
	if all.Summary.Failed > 0 {
		return fmt.Errorf("%d of %d servers failed", all.Summary.Failed, len(servers))
	}
	return t.out.err
}

// A testSummary is the result of testing all servers.
type testSummary struct {
	Summary struct {
		Passed int `json:"passed"`
		Failed int `json:"failed"`
	} `json:"summary"`
	Results []testResult `json:"results"`
}
