package pins

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli/changes"
	"github.com/dynmcp/dynmcp/internal/cli/conf"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/modules/pins/lock"
	"github.com/dynmcp/dynmcp/schema"
)

// A review compares the listings of servers with the approved tools.
type review struct {
	*linter
	files   lock.Files
	out     *terminal.Writer
	servers []schema.Server // the servers to review, set by choose
	tool    string          // the only tool to review, "" for all
}

// choose limits the review to what: SERVER, SERVER/TOOL, or "" for all servers with pins.
func (r *review) choose(what string) error {
	if r.cfg.SingleWrap {
		return hint.With(errors.New("nothing is pinned of a command after --"), "dynmcp add NAME -- COMMAND puts it into a config")
	}
	if what != "" {
		name, tool, _ := strings.Cut(what, "/")
		server, err := conf.ServerNamed(r.cfg, name)
		r.servers, r.tool = []schema.Server{server}, tool
		return err
	}
	for _, s := range r.cfg.Servers {
		if !s.Disabled && approval.Needed(s) != approval.Off {
			r.servers = append(r.servers, s)
		}
	}
	if len(r.servers) == 0 {
		return hint.With(errors.New("no server of the config has pins"), `write "defaults": {"pins": "warn"}, or name a server`)
	}
	return nil
}

// A difference is a tool that differs from the approved one.
type difference struct {
	server  schema.Server
	name    string
	verdict lock.Verdict
	tool    definition.Tool // as listed; its Raw is nil if the tool is gone
	before  string          // the approved digest, "" if there is none
}

// label returns one word for the difference.
func (d difference) label() string {
	switch {
	case d.verdict.Kind == lock.Gone:
		return "gone"
	case d.before != "":
		return "changed"
	}
	return "new"
}

// A comparison holds the differences of one server.
type comparison struct {
	server      schema.Server
	differences []difference
	runs, ran   string // the package now, and when the tools were approved
}

// compare returns the differences of the servers.
func (r *review) compare(ctx context.Context) (all []comparison, err error) {
	approvals, _, err := r.files.Read()
	if err != nil {
		return nil, hint.With(err, "take the lock of an earlier commit, or remove it and approve again")
	}
	book := lock.NewBook(approvals, nil)
	for _, s := range r.servers {
		tools, err := r.listed(s)
		if err != nil {
			return nil, err
		}
		c := comparison{server: s, runs: lock.Running(ctx, s)}
		approved := approvals[s.Name]
		if approved == nil {
			approved = &lock.Server{}
		}
		c.ran = approved.Package
		guard := book.Guard(s.Name, true)
		for i, v := range guard.Compare(tools) {
			if v.Kind != lock.Approved {
				c.add(r.tool, difference{s, tools[i].Name, v, tools[i], approved.Tools[tools[i].Name]})
			}
		}
		gone := guard.Gone(tools)
		if r.tool != "" && !slices.Contains(gone, r.tool) && !slices.ContainsFunc(tools, func(t definition.Tool) bool { return t.Name == r.tool }) {
			return nil, hint.With(fmt.Errorf("%s has no tool %q, nor had one that was approved", s.Name, r.tool), "dynmcp test %s lists its tools", s.Name)
		}
		for _, name := range gone {
			c.add(r.tool, difference{s, name, lock.Verdict{Kind: lock.Gone}, definition.Tool{Name: name}, approved.Tools[name]})
		}
		all = append(all, c)
	}
	return all, nil
}

func (c *comparison) add(only string, d difference) {
	if only == "" || only == d.name {
		c.differences = append(c.differences, d)
	}
}

// diff prints the differences, and returns an error if there are any.
func (r *review) diff(ctx context.Context) error {
	all, err := r.compare(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, c := range all {
		r.head(c)
		for _, d := range c.differences {
			r.show(d)
		}
		n += len(c.differences)
	}
	switch {
	case r.out.Err != nil:
		return r.out.Err
	case n == 0:
		r.out.Printf("All tools are as they were approved.\n")
		return nil
	case n == 1:
		return errors.New("1 tool is not as it was approved")
	}
	return fmt.Errorf("%d tools are not as they were approved", n)
}

// show prints a difference: the changes, or the whole of a new definition.
func (r *review) show(d difference) {
	r.out.Printf("  %-8s%s", d.label(), changes.Visible(d.name))
	switch d.verdict.Kind {
	case lock.LooksLike, lock.Renamed, lock.Moved:
		r.out.Printf(": %s", d.verdict)
	}
	r.out.Printf("\n")
	if d.verdict.Kind == lock.Gone {
		return
	}
	now := definition.Of(d.tool.Raw)
	if before, kept := r.files.Definition(d.before); kept {
		changes.Compare(r.out, before, now)
	} else {
		if d.before != "" {
			changes.Line(r.out, "what was approved is not kept here; this is what is listed:")
		}
		changes.Whole(r.out, now)
	}
	for _, f := range r.check(d.server.Name, d.tool.Name, d.tool.Raw) {
		changes.Line(r.out, "! "+f.String())
	}
}

// head prints the name of a server with differences.
func (r *review) head(c comparison) {
	if len(c.differences) == 0 && c.runs == c.ran {
		return
	}
	r.out.Heading(c.server.Name)
	switch {
	case c.runs == c.ran:
	case c.ran == "":
		r.out.Printf("  runs %s\n", changes.Visible(c.runs))
	default:
		r.out.Printf("  runs %s, was pinned with %s\n", changes.Visible(c.runs), changes.Visible(c.ran))
	}
}

// approve approves the differences for which ask answers the question with yes, or all if ask is
// nil. After an error of ask, the approvals for the current server are lost.
func (r *review) approve(ctx context.Context, ask func(question string) (string, error)) error {
	all, err := r.compare(ctx)
	if err != nil {
		return err
	}
	n, total := 0, 0
	for _, c := range all {
		total += len(c.differences)
	}
	for _, c := range all {
		r.head(c)
		approved, more, err := r.ask(c, ask)
		if err != nil {
			return err
		}
		if err := r.write(c, approved); err != nil {
			return err
		}
		n += len(approved)
		if !more {
			break
		}
	}
	if total == 0 {
		r.out.Printf("All tools are as they were approved.\n")
		return r.out.Err
	}
	r.out.Printf("%d approved, %d not.\n", n, total-n)
	return r.out.Err
}

// ask returns the approved differences of a server. more is false after the answer quit.
func (r *review) ask(c comparison, ask func(string) (string, error)) (approved []difference, more bool, err error) {
	for i, d := range c.differences {
		r.show(d)
		if ask == nil {
			approved = append(approved, d)
			continue
		}
		answer, err := ask(fmt.Sprintf("Approve %s/%s? [y]es, [n]o, [a]ll of %[1]s, [q]uit: ", d.server.Name, changes.Visible(d.name)))
		if err != nil {
			return nil, false, err
		}
		switch strings.ToLower(answer) {
		case "y", "yes":
			approved = append(approved, d)
		case "a", "all":
			return append(approved, c.differences[i:]...), true, nil
		case "q", "quit":
			return approved, false, nil
		}
	}
	return approved, true, nil
}

// write writes the approved differences of a server to the lock.
func (r *review) write(c comparison, approved []difference) error {
	if len(approved) == 0 && (c.runs == c.ran || len(c.differences) > 0) {
		return nil
	}
	var tools []definition.Tool
	for _, d := range approved {
		if d.verdict.Kind != lock.Gone {
			tools = append(tools, d.tool)
		}
	}
	if err := r.files.Keep(tools); err != nil {
		return err
	}
	return r.files.Update(func(l lock.Lock) {
		if l[c.server.Name] == nil {
			l.Set(c.server.Name, "", nil)
		}
		l[c.server.Name].Package = c.runs
		for _, d := range approved {
			if d.verdict.Kind == lock.Gone {
				delete(l[c.server.Name].Tools, d.name)
			} else {
				l[c.server.Name].Tools[d.name] = d.tool.Digest
			}
		}
	})
}
