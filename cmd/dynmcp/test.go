package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
name, all servers of the config are tested, at the same time. Tools are those
that hosts are shown: filters and aliases of the config hold.

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
			args = enabled(on.cfg)
		}
		return t.one(ctx, args[0], asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	cmd.Flags().Var(&timeout, "timeout", "how long a server may take, like 10s or in `milliseconds` (default: its load_timeout)")
	return cmd
}

// milliseconds is a duration that may be written as a plain number.
type milliseconds time.Duration

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
	timeout time.Duration
}

// A trial is the result of testing one server.
type trial struct {
	Name      string   `json:"name"`
	Transport string   `json:"transport"`
	Result    string   `json:"result"`
	Error     string   `json:"error,omitempty"`
	Hint      string   `json:"hint,omitempty"`
	Stderr    string   `json:"stderr,omitempty"`
	Server    string   `json:"server,omitempty"` // its name and version
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

func (t *tester) try(ctx context.Context, s schema.Server) trial {
	result := trial{Name: s.Name, Transport: s.Transport, Result: pass, Tools: []string{}}
	view, err := t.list(ctx, s)
	if err != nil {
		result.fail(err, t.timeout)
		return result
	}
	result.fill(view, s.Name)
	return result
}

// list starts a server, returns what it lists, and stops it again.
func (t *tester) list(ctx context.Context, s schema.Server) (*catalog.View, error) {
	if t.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.timeout)
		defer cancel()
	}
	h, err := startSelf(ctx, narrowed(t.cfg, s.Name), t.log)
	if err != nil {
		return nil, err
	}
	defer h.close()
	if err := h.loadOne(ctx, s.Name); err != nil {
		return nil, err
	}
	return h.agg.View(), nil
}

func (r *trial) fail(err error, timeout time.Duration) {
	why := explain(err, timeout)
	r.Result, r.Error, r.Hint, r.Stderr = fail, why.text, why.hint, why.stderr
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
		why = explanation{
			text: fmt.Sprintf("timed out after %dms", timeout.Milliseconds()),
			hint: "a longer --timeout gives it more time",
		}
	}
	var hint *hintError
	if errors.As(err, &hint) {
		why.hint = hint.hint
	}
	return explanation{secrets.String(why.text), secrets.String(why.hint), secrets.String(why.stderr)}
}

func (r *trial) fill(view *catalog.View, name string) {
	info, _ := view.Server(name)
	var about struct{ Name, Version string }
	if json.Unmarshal(info.Info, &about) == nil && about.Name != "" {
		r.Server = about.Name
		if about.Version != "" {
			r.Server += " " + about.Version
		}
	}
	for _, tool := range view.ServerTools(name) {
		r.Tools = append(r.Tools, tool.Leaf)
	}
	r.Resources = members(view.Resources(), "uri")
	r.Templates = members(view.Templates(), "uriTemplate")
	r.Prompts = members(view.Prompts(), "name")
	r.Warnings = append(view.Collisions(), view.Warnings()...)
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
	s, err := serverOf(t.cfg, name)
	if err != nil {
		return err
	}
	if !asJSON {
		t.out.printf("Testing %q\n", name)
	}
	waiting := showProgress(t.errOut, "starting "+name)
	result := t.try(ctx, s)
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

func (r *trial) write(s *screen) {
	if r.Result == pass {
		s.printf("Connected and initialized")
		if r.Server != "" {
			s.printf(": %s", oneLine(r.Server))
		}
		s.printf("\n")
		section(s, "Tools", r.Tools)
		section(s, "Resources", r.Resources)
		section(s, "Resource templates", r.Templates)
		section(s, "Prompts", r.Prompts)
		section(s, "Warnings", r.Warnings)
	}
	s.printf("\nResult: ")
	r.writeResult(s)
	r.writeReason(s, "")
}

func section(s *screen, title string, names []string) {
	if len(names) == 0 {
		return
	}
	s.printf("\n%s (%d):\n", title, len(names))
	for _, name := range names {
		s.printf("  %s\n", oneLine(name))
	}
}

func (r *trial) writeResult(s *screen) {
	c := green
	if r.Result == fail {
		c = red
	}
	s.paint(c, r.Result)
	s.printf("\n")
}

// writeReason says why a server failed and what to do.
func (r *trial) writeReason(s *screen, indent string) {
	if r.Error != "" {
		s.printf("%s\n", indented(r.Error, indent))
	}
	if r.Stderr != "" {
		s.printf("%slast lines of its stderr:\n%s\n", indent, indented(r.Stderr, indent+"  "))
	}
	if r.Hint != "" {
		s.printf("%s\n", indented("hint: "+r.Hint, indent))
	}
}

func (t *tester) all(ctx context.Context, asJSON bool) error {
	names := enabled(t.cfg)
	if !asJSON {
		t.out.printf("Testing all configured upstreams (%d)\n\n", len(names))
	}
	results := t.tryAll(ctx, names)
	waiting := showProgress(t.errOut, "")
	defer waiting.end()
	all := summary{Results: []trial{}}
	for i, name := range names {
		waiting.say(fmt.Sprintf("%d of %d: starting %s", i+1, len(names), name))
		r := <-results[i]
		waiting.clear()
		all.add(r)
		if !asJSON {
			t.out.printf("%s (%s) ... ", r.Name, r.Transport)
			r.writeResult(t.out)
			r.writeReason(t.out, "  ")
		}
	}
	waiting.end()
	return all.report(t.out, asJSON)
}

// atOnce is how many servers are started at the same time: enough not to wait
// for each, few enough not to stall the machine.
const atOnce = 8

// tryAll tests servers and returns where the result of each will be.
func (t *tester) tryAll(ctx context.Context, names []string) []chan trial {
	results := make([]chan trial, len(names))
	free := make(chan struct{}, atOnce)
	for i := range names {
		results[i] = make(chan trial, 1)
	}
	go func() {
		for i, name := range names {
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				s, _ := serverOf(t.cfg, name) // it is from the config
				results[i] <- t.try(ctx, s)
			}()
		}
	}()
	return results
}

// A summary is the result of testing all servers.
type summary struct {
	Summary struct {
		Passed int `json:"passed"`
		Failed int `json:"failed"`
	} `json:"summary"`
	Results []trial `json:"results"`
}

func (a *summary) add(r trial) {
	a.Results = append(a.Results, r)
	if r.Result == pass {
		a.Summary.Passed++
	} else {
		a.Summary.Failed++
	}
}

func (a *summary) report(s *screen, asJSON bool) error {
	if asJSON {
		if err := writeJSON(s, a); err != nil {
			return err
		}
	} else {
		s.printf("\nSummary: %d passed, %d failed\n", a.Summary.Passed, a.Summary.Failed)
	}
	if a.Summary.Failed > 0 {
		return fmt.Errorf("%d of %d servers failed", a.Summary.Failed, len(a.Results))
	}
	return s.err
}
