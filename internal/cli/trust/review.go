// Package trust implements diff and approve: it compares stored listings of servers with the lock of
// approved tools, prints the differences, and approves them.
package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/lint"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// A Review compares the listings of servers with the approved tools.
type Review struct {
	Config  *schema.Config
	Files   pins.Files
	Store   *store.Listings
	Package func(schema.Server) string // returns the package that a server runs
	Out     *terminal.Writer
	Servers []schema.Server // the servers to review, set by Select
	Tool    string          // the only tool to review, "" for all

	names *lint.Names // created when first needed
}

// Select limits the review to what: SERVER, SERVER/TOOL, or "" for all servers with pins. named
// returns the server of a name.
func (r *Review) Select(what string, named func(string) (schema.Server, error)) error {
	if r.Config.SingleWrap {
		return hint.With(errors.New("nothing is pinned of a command after --"), "dynmcp add NAME -- COMMAND puts it into a config")
	}
	if what != "" {
		name, tool, _ := strings.Cut(what, "/")
		server, err := named(name)
		r.Servers, r.Tool = []schema.Server{server}, tool
		return err
	}
	for _, s := range r.Config.Servers {
		if !s.Disabled && s.Pins != schema.PinsOff {
			r.Servers = append(r.Servers, s)
		}
	}
	if len(r.Servers) == 0 {
		return hint.With(errors.New("no server of the config has pins"), `write "defaults": {"pins": "warn"}, or name a server`)
	}
	return nil
}

// A difference is a tool that differs from the approved one.
type difference struct {
	server  schema.Server
	name    string
	verdict pins.Verdict
	tool    definition.Tool // as listed; its Raw is nil if the tool is gone
	before  string          // the approved digest, "" if there is none
}

// label returns one word for the difference.
func (d difference) label() string {
	switch {
	case d.verdict.Kind == pins.Gone:
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
func (r *Review) compare() (all []comparison, err error) {
	lock, _, err := r.Files.Read()
	if err != nil {
		return nil, hint.With(err, "take the lock of an earlier commit, or remove it and approve again")
	}
	book := pins.NewBook(lock, nil)
	for _, s := range r.Servers {
		tools, err := r.listed(s)
		if err != nil {
			return nil, err
		}
		c := comparison{server: s, runs: r.Package(s)}
		approved := lock[s.Name]
		if approved == nil {
			approved = &pins.Server{}
		}
		c.ran = approved.Package
		guard := book.Guard(s.Name, true)
		for i, v := range guard.Compare(tools) {
			if v.Kind != pins.Approved {
				c.add(r.Tool, difference{s, tools[i].Name, v, tools[i], approved.Tools[tools[i].Name]})
			}
		}
		gone := guard.Gone(tools)
		if r.Tool != "" && !slices.Contains(gone, r.Tool) && !slices.ContainsFunc(tools, func(t definition.Tool) bool { return t.Name == r.Tool }) {
			return nil, hint.With(fmt.Errorf("%s has no tool %q, nor had one that was approved", s.Name, r.Tool), "dynmcp test %s lists its tools", s.Name)
		}
		for _, name := range gone {
			c.add(r.Tool, difference{s, name, pins.Verdict{Kind: pins.Gone}, definition.Tool{Name: name}, approved.Tools[name]})
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

// listed returns the last listing of a server.
func (r *Review) listed(s schema.Server) ([]definition.Tool, error) {
	stored, err := r.Store.Load(s)
	if err != nil {
		return nil, hint.With(err, "%s", store.Remedy(err))
	}
	if stored == nil {
		return nil, hint.With(fmt.Errorf("%s has not been listed yet", s.Name), "--start starts it and lists it first")
	}
	return ToolsOf(s.Name, stored), nil
}

// ToolsOf returns the tools of a stored listing.
func ToolsOf(server string, stored *catalog.Stored) []definition.Tool {
	c := catalog.New()
	c.Declare([]catalog.Server{{Name: server, Lazy: true}})
	c.Remember(map[string]*catalog.Stored{server: stored})
	tools, _ := c.Definitions(server)
	return tools
}

// Diff prints the differences, and returns an error if there are any.
func (r *Review) Diff() error {
	all, err := r.compare()
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
	case r.Out.Err != nil:
		return r.Out.Err
	case n == 0:
		r.Out.Printf("All tools are as they were approved.\n")
		return nil
	case n == 1:
		return errors.New("1 tool is not as it was approved")
	}
	return fmt.Errorf("%d tools are not as they were approved", n)
}

// head prints the name of a server with differences.
func (r *Review) head(c comparison) {
	if len(c.differences) == 0 && c.runs == c.ran {
		return
	}
	r.Out.Heading(c.server.Name)
	switch {
	case c.runs == c.ran:
	case c.ran == "":
		r.Out.Printf("  runs %s\n", visible(c.runs))
	default:
		r.Out.Printf("  runs %s, was pinned with %s\n", visible(c.runs), visible(c.ran))
	}
}

// Approve approves the differences for which ask answers the question with yes, or all if ask is
// nil. After an error of ask, the approvals for the current server are lost.
func (r *Review) Approve(ask func(question string) (string, error)) error {
	all, err := r.compare()
	if err != nil {
		return err
	}
	n, total := 0, 0
	for _, c := range all {
		total += len(c.differences)
	}
	for _, c := range all {
		r.head(c)
		approved, more, err := r.choose(c, ask)
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
		r.Out.Printf("All tools are as they were approved.\n")
		return r.Out.Err
	}
	r.Out.Printf("%d approved, %d not.\n", n, total-n)
	return r.Out.Err
}

// choose returns the approved differences of a server. more is false after the answer quit.
func (r *Review) choose(c comparison, ask func(string) (string, error)) (approved []difference, more bool, err error) {
	for i, d := range c.differences {
		r.show(d)
		if ask == nil {
			approved = append(approved, d)
			continue
		}
		answer, err := ask(fmt.Sprintf("Approve %s/%s? [y]es, [n]o, [a]ll of %[1]s, [q]uit: ", d.server.Name, visible(d.name)))
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
func (r *Review) write(c comparison, approved []difference) error {
	if len(approved) == 0 && (c.runs == c.ran || len(c.differences) > 0) {
		return nil
	}
	var tools []definition.Tool
	for _, d := range approved {
		if d.verdict.Kind != pins.Gone {
			tools = append(tools, d.tool)
		}
	}
	if err := r.Files.Keep(tools); err != nil {
		return err
	}
	return r.Files.Update(func(l pins.Lock) {
		if l[c.server.Name] == nil {
			l.Set(c.server.Name, "", nil)
		}
		l[c.server.Name].Package = c.runs
		for _, d := range approved {
			if d.verdict.Kind == pins.Gone {
				delete(l[c.server.Name].Tools, d.name)
			} else {
				l[c.server.Name].Tools[d.name] = d.tool.Digest
			}
		}
	})
}
