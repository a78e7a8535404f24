package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/input"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/pace"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// Tool is one tool as hosts see it.
type Tool struct {
	search.Tool // its names

	Direct string // its name on the direct surface: server__tool

	Title       string
	Summary     string          // one line, free of invisible characters, not escaped
	Description string          // the upstream's, or the operator's override
	Raw         json.RawMessage // the upstream's object, verbatim

	InputSchema, OutputSchema, Annotations json.RawMessage // parts of Raw; nil if absent

	Input *input.Schema // of InputSchema

	Access    toolglob.Access // according to the annotations
	Class     string          // for the rules of a policy
	OnlyTask  bool            // it runs only as a task
	OnlyViews bool            // only views of MCP Apps call it, no model
	HasView   bool            // it has a view of MCP Apps

	ExampleArgs json.RawMessage // the operator's, nil if there are none

	MaxOutputChars int            // of a result; 0 is no limit
	Timeout        *time.Duration // of a call; nil is the server's
	RenderMode     string         // one of schema.Render…, "" being json

	Guarded    bool              // it can be called only if it is approved
	Unapproved *approval.Verdict // why it is not approved; nil if it is

	typed      json.RawMessage // Raw, fit for typed hosts
	types      bool            // its schemas are written as types
	overridden bool            // Description is not the one in Raw
}

// ServerInfo describes a server.
type ServerInfo struct {
	Name, Description, Note string

	Called string // its name in texts: Name or, in single-wrap mode, what the server calls itself
	Intro  string // Description on one line, or what the server says of itself

	Lazy   bool
	Loaded bool   // it was listed in this run
	Stored bool   // it was listed only in an earlier run
	Down   string // why it could not be started, of a server that is not loaded

	Tools  int // after filters; before them for a stored listing that is not read yet
	Denied int // tools that are hidden because no call of them could run

	Protocol                 string // the version in use
	Tasks                    Tasks  // that it offers
	Instructions             string
	Capabilities, Info, Rest json.RawMessage
}

// A serverView is the part of a view for one server. It is immutable.
type serverView struct {
	server  Server
	index   *index // nil: no listing
	info    ServerInfo
	follows Tasks           // the tasks that its hosts support
	filter  toolglob.Filter // once the tools are read

	described   string // the operator's description, folded
	descriptive bool   // described says more than the name
	intro       string // described, or what the server or its tools say in a line

	tools []*Tool       // shown, sorted by name
	names []string      // their names without the server's, escaped
	docs  []*Tool       // by entry of index.tools; nil where hidden
	views []*Tool       // of docs, those that are only for views of MCP Apps: no model sees them
	found search.Server // docs for searches, with overrides applied
	terms []string      // of the server's own name

	wordCounts func() map[string]float64 // counts the terms of its name and of intro

	open func() *serverView // reads the tools of a stored listing; nil if there is nothing to read

	approval approval.Judgement // of Server.Guard

	denied []*Tool // that no call could run, see Server.hider

	onlyTasks []string // upstream names of tools left out because they run only as tasks
	warnings  []string
}

// newServerView applies a server's declaration to its listing, for hosts that support such
// tasks. Tools whose names are taken by earlier servers are left out. down is why a server
// that is not loaded could not be started. The tools of a stored listing are read when open
// is called.
func newServerView(s Server, x *index, down string, taken map[string]*Tool, follows Tasks) *serverView {
	if x == nil || x.open == nil {
		return buildServerView(s, x, down, taken, follows)
	}
	p := unlistedView(s, x, follows)
	p.finish(down)
	p.open = sync.OnceValue(func() *serverView { return buildServerView(s, x.open(), down, nil, follows) })
	return p
}

// unlistedView returns the part without its tools.
func unlistedView(s Server, x *index, follows Tasks) *serverView {
	p := &serverView{server: s, index: x, follows: follows, described: display.Fold(s.Description), terms: search.Terms(s.Name)}
	p.descriptive = p.saysMore(p.described)
	return p
}

func buildServerView(s Server, x *index, down string, taken map[string]*Tool, follows Tasks) *serverView {
	p := unlistedView(s, x, follows)
	if x != nil {
		p.filter = toolglob.NewFilter(s.Filter)
		p.warnings = slices.Clone(x.read.Warnings)
		p.addTools(taken)
		p.warnOfTasks()
		p.warnings = append(p.warnings, p.approval.Warnings...)
		p.checkFilter()
		p.found.Index = x.words
		if len(s.Overrides) > 0 {
			p.checkOverrides()
			p.found.Index = sync.OnceValue(func() *search.Index { return entry.Index(p.overriddenEntries()) })
		}
	}
	p.finish(down)
	return p
}

// finish sets the fields that depend on the tools.
func (p *serverView) finish(down string) {
	p.info = p.describeServer()
	p.info.Called = p.called()
	if !p.info.Loaded {
		p.info.Down = display.Fold(down)
	}
	switch p.intro = p.described; {
	case p.intro != "" && (p.descriptive || !p.server.Lazy || !p.info.Stored || len(p.tools) == 0):
	case p.server.Lazy && len(p.tools) > 0: // the text does not list them
		p.intro = cmp.Or(p.proposal(""), p.intro)
	default:
		p.intro = p.ownIntro()
	}
	p.info.Intro = p.intro
	p.found.About = sync.OnceValue(p.ownWords)
	p.wordCounts = sync.OnceValue(p.countWords)
	for _, t := range p.tools {
		p.names = append(p.names, display.Escape(t.Leaf))
	}
}

// ownWords returns the terms of the operator's description, nil if dynmcp generated it: those are
// words of the tools, which would count twice.
func (p *serverView) ownWords() []string {
	words := search.Terms(p.described)
	generated := search.SetOf(p.proposal(""))
	if fresh := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return generated[w] }); len(fresh)*3 <= len(words) {
		return nil
	}
	return words
}

// ownLine is the most UTF-16 units that a text shows of a server's own words, if the operator
// gave no description.
const ownLine = 80

// ownIntro returns the first line in which a server says more than its name.
func (p *serverView) ownIntro() string {
	for _, text := range p.ownTexts() {
		line := display.Summary(strings.TrimLeft(text, "#*>- \t\r\n"), ownLine)
		if p.saysMore(line) {
			return line
		}
	}
	return ""
}

// saysMore reports whether a line says more of the server than its name does.
func (p *serverView) saysMore(line string) (more bool) {
	search.Words(line, func(w string) {
		more = more || !search.IsStopWord(w) && !serverWords()[w] && !slices.Contains(p.terms, w)
	})
	return more
}

// serverWords are terms that fit any server.
var serverWords = sync.OnceValue(func() map[string]bool {
	return search.SetOf("mcp server servers tool tools instructions usage guide overview")
})

// called returns the server's name in texts for a host. In single-wrap mode it is the
// server's own, because the config has only a command.
func (p *serverView) called() string {
	if p.server.Single {
		name, _ := wire.Text(wire.Get(p.info.Info, "name"))
		if name = display.Asked(name); name != "" {
			return name
		}
	}
	return p.server.Name
}

func (p *serverView) describeServer() ServerInfo {
	s := p.server
	info := ServerInfo{Name: s.Name, Description: s.Description, Note: s.Note, Lazy: s.Lazy}
	if p.index == nil {
		return info
	}
	l := p.index.listing
	info.Loaded, info.Stored = p.index.stored == nil, p.index.stored != nil
	info.Tools, info.Denied = len(p.tools), len(p.denied)
	if p.index.open != nil {
		info.Tools = p.index.stored.Count - p.index.stored.ForViews
	}
	info.Protocol, info.Tasks, info.Instructions, info.Capabilities, info.Info, info.Rest = l.Protocol, l.Tasks, l.Instructions, l.Capabilities, l.Info, l.Rest
	return info
}

// addTools exposes the tools that pass the filter.
func (p *serverView) addTools(taken map[string]*Tool) {
	leaves := p.leaves()
	if s := p.server; s.Guard != nil {
		p.approval = s.Guard.Judge(p.index.defined(), func(i int) bool { return p.filter.Passes(p.index.tools[i].Name, p.index.tools[i].Access) })
	}
	p.docs = make([]*Tool, len(p.index.tools))
	p.found = search.Server{Name: p.server.Name, Terms: p.terms, Tools: make([]*search.Tool, len(p.docs))}
	var pacer pace.Pacer
	for i, e := range p.index.tools {
		pacer.Step()
		if !p.filter.Passes(e.Name, e.Access) || p.leaveOut(e) || p.hidesUnapproved(e) || p.isDenied(e, leaves[e.Name]) {
			continue
		}
		t := p.expose(e, leaves[e.Name])
		if taken[t.Name] != nil {
			p.warnf("tool %s is left out: another server has the name", display.Name(t.Name))
			continue
		}
		if p.docs[i] = t; e.OnlyViews {
			p.views = append(p.views, t)
			continue
		}
		p.tools = append(p.tools, t)
		p.found.Tools[i] = &t.Tool
	}
	slices.SortFunc(p.tools, func(x, y *Tool) int {
		pacer.Step()
		return strings.Compare(x.Name, y.Name)
	})
}

// checkFilter warns of patterns that match nothing the server lists: one that
// was meant to hide a tool hides nothing.
func (p *serverView) checkFilter() {
	for _, pattern := range p.server.Filter {
		if strings.HasPrefix(strings.TrimPrefix(pattern, "!"), "@") {
			continue // a class may be empty
		}
		matches := toolglob.NewFilter([]string{strings.TrimPrefix(pattern, "!")})
		if !slices.ContainsFunc(p.index.tools, func(e *entry.Tool) bool { return matches.Passes(e.Name, e.Access) }) {
			p.warnf("tool_filter pattern %s matches no tool", display.Name(pattern))
		}
	}
}

// checkOverrides warns of overrides that change nothing.
func (p *serverView) checkOverrides() {
	for _, name := range slices.Sorted(maps.Keys(p.server.Overrides)) {
		if !slices.ContainsFunc(p.index.tools, func(e *entry.Tool) bool { return e.Name == name }) {
			p.warnf("override is for tool %s, which does not exist", display.Name(name))
		}
	}
}

// leaves maps the upstream's tool names to those shown. An alias that would
// hide another tool, or that fits no name, is not applied.
func (p *serverView) leaves() map[string]string {
	leaf := make(map[string]string, len(p.index.tools))
	used := make(map[string]bool, len(p.index.tools))
	for _, e := range p.index.tools {
		leaf[e.Name] = e.Name
		used[e.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(p.server.Aliases)) {
		alias := p.server.Aliases[name]
		_, exists := leaf[name]
		switch {
		case !exists:
			p.warnf("alias %s is for tool %s, which does not exist", display.Name(alias), display.Name(name))
		case alias == name:
		case used[alias]:
			p.warnf("tool %s keeps its name: its alias %s is taken", display.Name(name), display.Name(alias))
		case entry.UnfitName(alias) != "":
			p.warnf("tool %s keeps its name: its alias is unfit", display.Name(name))
		default:
			leaf[name] = alias
			used[alias] = true
		}
	}
	return leaf
}

func (p *serverView) expose(e *entry.Tool, leaf string) *Tool {
	s := p.server
	t := &Tool{
		Tool: search.Tool{Name: leaf, Server: s.Name, Upstream: e.Name, Leaf: leaf, Terms: search.Terms(leaf)}, MaxOutputChars: s.MaxOutputChars, types: s.Types,
		Title: e.Title, Description: e.Description, Raw: e.Raw, typed: e.Typed,
		Input: e.Check, InputSchema: e.Input, OutputSchema: e.Output, Annotations: e.Annotations, Access: e.Access, Class: e.Class, OnlyTask: e.OnlyTask, OnlyViews: e.OnlyViews, HasView: names.MayHaveView(e.Raw) && names.ViewURI(e.Raw) != "",
	}
	if s.Single {
		t.Direct = directname.Of("", leaf)
	} else {
		t.Name, t.Direct = s.Name+"/"+leaf, directname.Of(s.Name, leaf)
	}
	t.Guarded = approval.Blocks(s.Guard)
	if v, ok := p.approval.Unapproved[e.Name]; ok {
		t.Unapproved = &v
	}
	hint, _ := wire.Text(wire.Get(e.Annotations, "title"))
	t.Summary = display.FirstLine(t.Description, t.Title, hint)
	t.Override(s.Overrides[e.Name])
	return t
}

// overriddenEntries returns the entries with overrides applied, for searches.
func (p *serverView) overriddenEntries() []*entry.Tool {
	out := slices.Clone(p.index.tools)
	for i, e := range out {
		if o, ok := p.server.Overrides[e.Name]; ok {
			changed := *e
			if o.Description != "" {
				changed.Description = o.Description
			}
			changed.Description += "\n" + o.Summary
			out[i] = &changed
		}
	}
	return out
}

func (p *serverView) warnf(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// Override applies an override to the tool: its texts and its limits.
func (t *Tool) Override(o schema.ToolOverride) {
	if o.Description != "" {
		t.Description, t.overridden = o.Description, true
	}
	if line := display.FirstLine(o.Summary, o.Description); line != "" {
		t.Summary = line
	}
	if o.ExampleArgs != nil {
		t.ExampleArgs = o.ExampleArgs
	}
	if o.MaxOutputChars != nil {
		t.MaxOutputChars = *o.MaxOutputChars
	}
	if o.Timeout != nil {
		t.Timeout = o.Timeout
	}
	t.RenderMode = cmp.Or(o.RenderMode, t.RenderMode)
}

// Shaped reports whether results of the tool may be changed on their way to hosts.
func (t *Tool) Shaped() bool {
	return t.RenderMode != schema.RenderRaw && (t.MaxOutputChars > 0 || t.RenderMode == schema.RenderText)
}
