package aggregator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A toolCall is what a tools/call means where it means a tool of an upstream: called as
// itself, by way of a tool of ours, or as the arguments of one.
type toolCall struct {
	params callParams      // as the host sent them
	name   string          // of the tool as discover_tool shows it, on the direct surface, or its path in tree
	input  json.RawMessage // the tool's arguments; part of params, mostly

	asItself bool          // params are the tool's but for the name; there is no input
	direct   bool          // name is that on the direct surface
	tree     *catalog.Tree // name is a path in it; nil elsewhere
	through  door          // the host called this; zero elsewhere
	inside   catalog.Door  // the call was the arguments of a tool of this surface; zero elsewhere

	apart bool // its params are its own, and what it may need was waited for
}

// readCall reads a tools/call: the host's, or one inside the arguments of a tool of that
// surface, which has the exposed name of a tool, or for mcp_call that of one of our own.
// ok is false where it means no tool of an upstream: it is answered then, or will be.
func (s *session) readCall(r *host.Request, inside catalog.Door) (c toolCall, ok bool) {
	name, arguments, err := r.Outline.FindStrict(r.Params, "name", "arguments")
	if err != nil {
		r.Reply(nil, invalid("tools/call: %v", err))
		return c, false
	}
	p := callParams{all: r.Params, name: name, arguments: arguments, task: r.Outline.Get(r.Params, "task") != nil}
	outer := inside == catalog.Door{}
	if outer || inside == catalog.Browser {
		if t := s.ownTool(p.name.In(p.all)); t != nil {
			return t.take(s, r, p)
		}
	}
	c = toolCall{params: p, asItself: outer, direct: outer, inside: inside}
	if c.name, ok = wire.Text(p.name.In(p.all)); !ok {
		r.Reply(nil, invalid(`tools/call needs a string "name"`))
		return c, false
	}
	if outer {
		return c, true
	}
	if c.input = p.arguments.In(p.all); c.input != nil && !wire.IsObject(c.input) {
		r.Reply(nil, invalid(`tools/call: "arguments" must be an object, not %s`, wire.TypeName(c.input)))
		return c, false
	}
	return c, true
}

// ownTool returns the tool of ours of a name, raw JSON, nil if there is none.
func (s *session) ownTool(rawName json.RawMessage) *tool {
	tools := s.tools()
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.name != "" && wire.EqualString(rawName, t.name) }); i >= 0 {
		return &tools[i]
	}
	if name, ok := wire.Text(rawName); ok && len(s.agg.config().Pin) > 0 {
		if i := slices.IndexFunc(tools, func(t tool) bool { return catalog.IsShort(name, t.name) }); i >= 0 {
			return &tools[i]
		}
	}
	return nil
}

// take answers a call of a tool of ours, or returns which tool of an upstream it means.
func (t *tool) take(s *session, r *host.Request, p callParams) (c toolCall, ok bool) {
	if t.call != nil {
		t.call(s, r, p)
		return c, false
	}
	c, err := t.means(p, r.Outline)
	if err != nil {
		refuseArguments(r, t.name, err)
	}
	return c, err == nil
}

// callTool calls the tool that a call means. What use_tool or a name of its own calls has
// that very name, and a door lets no tool through that may do more: hosts, and people's
// rules in them, decide by these names. Other surfaces call what a name can only mean. Whether there is such a tool is the view's to say, from which
// tools are listed, too: one that a filter hides cannot be found.
func (s *session) callTool(r *host.Request, c toolCall) {
	view := s.view()
	t, server := s.find(view, &c)
	if t == nil {
		s.callUnknown(r, c, server)
		return
	}
	if t.Access < c.through.lets {
		r.Reply(errorResult(fmt.Sprintf(`%s may do more than %s lets through: call it through %s {"tool_name": %s, "tool_input": {…}} (outcome not_sent: nothing was called)`,
			t.Name, c.through.name, t.Door, wire.Quote(t.Name))), nil)
		return
	}
	if c.tree != nil && !c.apart && !t.Input.Compiled() {
		c.params.all, c.input, c.apart = bytes.Clone(c.params.all), bytes.Clone(c.input), true // they are lent
		s.agg.work.Answer(r, func() { s.callTool(r, c) })
		return
	}
	to := route{upstream: s.agg.set.Get(t.Server), tool: t, task: c.params.task, asText: !c.asItself && !s.tree, explain: c.through.name != ""}
	if to.explain || c.tree != nil {
		c.input, to.changed = t.Input.FitNumbers(c.input, r.Outline)
	}
	if c.tree != nil {
		if wrong := t.Input.Check(c.input); wrong != nil {
			refuseInput(s, r, c.name, wrong)
			return
		}
	}
	if !isOffered(to.upstream) {
		r.Reply(errorResult(s.unknownServer(s.agg.catalog.View(), t.Server)), nil)
		return
	}
	if to.asText && t.OnlyTask && r.Era == transports.Handshake && !to.task {
		r.Reply(errorResult(fmt.Sprintf("%s runs only as a task (MCP tasks), which a call of use_tool is not: call it by its own name, %s.", t.Name, t.Direct)), nil)
		return
	}
	if c.asItself {
		to.params = c.params.all
		if !wire.EqualString(c.params.name.In(to.params), t.Upstream) {
			to.params = wire.Replace(to.params, wire.Edit{Span: c.params.name, With: wire.Quote(t.Upstream)})
		}
	} else {
		to.params = c.params.with(t.Upstream, c.input)
		r.Params, r.Outline = nil, nil // they may be used up
	}
	s.dispatch(r, to)
}

// find returns the tool that a call means, nil where what the session sees has none:
// then server is the one whose tool it would be, "" if that is not known.
func (s *session) find(view *catalog.View, c *toolCall) (t *catalog.Tool, server string) {
	switch {
	case c.tree != nil:
		here := c.tree.At(view, c.name)
		if here.Tool == nil && here.Node == nil && here.Twice == "" {
			here = c.tree.Meant(view, c.name)
		}
		return here.Tool, here.Server
	case c.direct:
		if s.exposes(schema.ExposeDirect) {
			t, _ = view.Direct(c.name)
		}
		return t, ""
	}
	look := view.Tool
	if c.inside != (catalog.Door{}) {
		look = view.Called
	}
	if t, ok := look(c.name); ok {
		return t, ""
	}
	return nil, view.ServerFor(c.name)
}

// callUnknown takes a call of a tool that a view does not know, which is an inquiry: the
// tool's server may be one that is not listed yet, or whose list is being fetched again.
func (s *session) callUnknown(r *host.Request, c toolCall, server string) {
	if c.apart {
		s.refuseUnknown(r, c)
		return
	}
	found := func() bool {
		t, _ := s.find(s.view(), &c)
		return t != nil
	}
	c.input = bytes.Clone(c.input) // it is lent
	inquiry{server: server, enough: found, asText: !c.direct, answer: func() {
		c.params.all, c.apart = r.Params, true
		s.callTool(r, c)
	}}.ask(s, r)
}

// refuseUnknown answers a call of a tool that there is not.
func (s *session) refuseUnknown(r *host.Request, c toolCall) {
	view := s.view()
	switch {
	case c.direct:
		s.callNotShown(r, c)
	case c.tree != nil:
		r.Reply(errorResult(unknownPath(c.tree, view, c.name)), nil)
	case c.inside != catalog.Door{}:
		r.Reply(errorResult(view.UnknownAt(c.inside, c.name)), nil)
	default:
		r.Reply(errorResult(s.unknownTool(view, c.name)), nil)
	}
}

// callNotShown takes a call by a name that no surface shows. If the tools of a wrapped
// server are shown as themselves, an unknown one is that server's business, unless a
// filter decides which there are.
func (s *session) callNotShown(r *host.Request, c toolCall) {
	if u := s.single(); u != nil && s.exposes(schema.ExposeDirect) && len(u.Server.ToolFilter) == 0 {
		s.dispatch(r, route{upstream: u, params: r.Params, task: c.params.task})
		return
	}
	if refusal := s.onlyTask(r.Era, c.name); refusal != nil {
		r.Reply(nil, refusal)
		return
	}
	r.Reply(nil, s.notShown(c.name))
}

// notShown is the error for a tool that no surface shows. If a tool of ours can call
// it, the error says how.
func (s *session) notShown(name string) *wire.Error {
	view := s.views()[catalog.NoTasks]
	t := meant(view, name)
	if t == nil {
		t, _ = view.OfLeaf(name)
	}
	if t != nil && s.exposes(schema.ExposeDiscover) {
		return invalid("Unknown tool: %s. Call it through %s: {\"tool_name\": %s, \"tool_input\": {…}}", name, t.Door, wire.Quote(t.Name))
	}
	if t != nil && s.exposes(schema.ExposeBrowser) {
		return invalid("Unknown tool: %s. Call it through mcp_call: {\"method\": \"tools/call\", \"params\": {\"name\": %s, \"arguments\": {…}}}", name, wire.Quote(t.Name))
	}
	if t != nil && s.exposes(schema.ExposeProxy) {
		return invalid("Unknown tool: %s. Call it through proxy: {\"action\": \"call\", \"type\": \"tool\", \"path\": %s, \"args\": {…}}", name, wire.Quote(t.Name))
	}
	if info, ok := view.Server(view.ServerOf(name)); ok && info.Down != "" {
		return invalid("Unknown tool: %s. Its server %s could not be started: %s", name, info.Called, info.Down)
	}
	return invalid("Unknown tool: %s", name)
}

// callParams are the params of a tools/call, and where two members of theirs are.
type callParams struct {
	all             json.RawMessage
	name, arguments wire.Span
	task            bool // they ask for a task
}

// with returns the params with another name and other arguments, which may be
// nil; every other byte stays. If the arguments lie in those of before they stay where
// they are, and p is used up.
func (p callParams) with(name string, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	if params := p.inPlace(name, arguments); params != nil {
		return params
	}
	rename := wire.Edit{Span: p.name, With: wire.Quote(name)}
	if p.arguments.Len == 0 {
		return wire.Set(wire.Replace(p.all, rename), "arguments", arguments)
	}
	return wire.Replace(p.all, rename, wire.Edit{Span: p.arguments, With: arguments})
}

// inPlace is with for arguments that lie in those of before: what is around them is
// written next to them. It returns nil where there is no room for that, or too much
// would move.
func (p callParams) inPlace(name string, arguments json.RawMessage) json.RawMessage {
	const farthest = 4 << 10
	at := wire.Locate(p.arguments.In(p.all), arguments)
	if at.Len == 0 || p.name.Off > p.arguments.Off {
		return nil
	}
	at.Off += p.arguments.Off
	var space [128]byte
	quoted := wire.AppendQuote(space[:0], name)
	before, between, behind := p.all[:p.name.Off], p.all[p.name.Off+p.name.Len:p.arguments.Off], p.all[p.arguments.Off+p.arguments.Len:]
	start := at.Off - len(between) - len(quoted) - len(before)
	if start < 0 || len(before)+len(between)+len(behind) > farthest {
		return nil
	}
	copy(p.all[at.Off-len(between):], between)
	copy(p.all[start+len(before):], quoted)
	copy(p.all[start:], before)
	copy(p.all[at.Off+at.Len:], behind)
	return p.all[start : at.Off+at.Len+len(behind)]
}
