package aggregator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A toolCall is a call of a tool of an upstream: by its own name, through a tool of ours,
// or in the arguments of one.
type toolCall struct {
	session *session
	request *host.Request
	params  callParams      // as the host sent them
	by      *surface.Target // how the tool is called; nil is by its name on the direct surface
	name    string          // as by has it
	input   json.RawMessage // the tool's arguments; part of params, mostly

	waited bool // for what it may need; its params are a copy
}

// verbatim reports whether the params are the tool's but for the name: there is no input.
func (c *toolCall) verbatim() bool { return c.by == nil || c.by.Verbatim }

// readToolCall reads a tools/call: the host's, or with by the one that is in the arguments of
// a tool of ours. It returns nil where that calls no tool of an upstream: it is answered
// then, or will be.
func readToolCall(s *session, r *host.Request, by *surface.Target) *toolCall {
	c := &toolCall{session: s, request: r, by: by}
	if !c.read() {
		return nil
	}
	return c
}

func (c *toolCall) read() bool {
	r := c.request
	name, arguments, err := r.Outline.FindStrict(r.Params, "name", "arguments")
	if err != nil {
		r.Reply(nil, invalid("tools/call: %v", err))
		return false
	}
	c.params = callParams{all: r.Params, name: name, arguments: arguments, task: r.Outline.Get(r.Params, "task") != nil}
	rawName := name.In(r.Params)
	if c.by == nil || c.by.Nested {
		if t := c.session.surface().Tool(rawName, len(c.session.agg.config().Pin) > 0); t != nil {
			return c.readOwn(t)
		}
	}
	var ok bool
	if c.name, ok = wire.Text(rawName); !ok {
		r.Reply(nil, invalid(`tools/call needs a string "name"`))
		return false
	}
	if c.by == nil {
		return true
	}
	if c.input = arguments.In(r.Params); c.input != nil && !wire.IsObject(c.input) {
		r.Reply(nil, invalid(`tools/call: "arguments" must be an object, not %s`, wire.TypeName(c.input)))
		return false
	}
	return true
}

// readOwn reads a call of a tool of ours, which answers it or calls a tool of an upstream.
func (c *toolCall) readOwn(t *surface.Tool) bool {
	arguments := c.params.arguments.In(c.params.all)
	call := func() *surface.Call {
		return &surface.Call{Session: surfaceCall{c.session, c.request, c.params.all}, Tool: t.Name, Arguments: arguments}
	}
	if t.Answer != nil {
		t.Answer(call())
		return false
	}
	var err error
	c.by = t.Target
	if c.name, c.input, err = t.Read(arguments, c.request.Outline); err != nil {
		call().Refuse(err)
	}
	return err == nil
}

// send sends the call to the upstream of its tool. Whether there is such a tool is the
// view's to say, from which tools are listed, too: one that a filter hides cannot be found.
func (c *toolCall) send() {
	s, r := c.session, c.request
	t, server := c.find()
	if t == nil {
		c.sendLater(server)
		return
	}
	to := route{upstream: s.agg.set.Get(t.Server), tool: t, task: c.params.task, asText: !c.verbatim() && !s.tree}
	if c.by != nil {
		if c.by.Check != nil && !c.waited && !t.Input.Compiled() {
			c.params.all, c.input, c.waited = bytes.Clone(c.params.all), bytes.Clone(c.input), true
			s.agg.work.Answer(r, c.send)
			return
		}
		if c.refuse(t) {
			return
		}
		if to.showInput = c.by.ShowInput; to.showInput != nil || c.by.Check != nil {
			c.input, to.changed = t.Input.FitNumbers(c.input, r.Outline)
		}
		if c.by.Check != nil && c.refuseInput(t) {
			return
		}
	}
	switch {
	case !isOffered(to.upstream):
		r.Reply(results.Error(surface.UnknownServer(surfaceCall{session: s}, t.Server)), nil)
		return
	case to.asText && t.OnlyTask && r.Era == transports.Handshake && !to.task:
		r.Reply(results.Error(fmt.Sprintf("%s runs only as a task (MCP tasks), which a call of use_tool is not: call it by its own name, %s.", t.Name, t.Direct)), nil)
		return
	case !c.verbatim():
		to.params = c.params.with(t.Upstream, c.input)
		r.Params, r.Outline = nil, nil // they may be used up
	case wire.EqualString(c.params.name.In(c.params.all), t.Upstream):
		to.params = c.params.all
	default:
		to.params = wire.Replace(c.params.all, wire.Edit{Span: c.params.name, With: wire.Quote(t.Upstream)})
	}
	s.dispatch(r, to)
}

// find returns the tool of the call, nil where what the session sees has none: then server
// is the one whose tool it would be, "" if that is not known.
func (c *toolCall) find() (t *catalog.Tool, server string) {
	switch view := c.session.view(); {
	case c.by != nil:
		return c.by.Find(view, c.name)
	case c.session.surface().Direct:
		t, _ = view.Direct(c.name)
	}
	return t, ""
}

// refuse answers a call of a tool that is not called in this way.
func (c *toolCall) refuse(t *catalog.Tool) bool {
	if c.by.Refuse == nil {
		return false
	}
	why := c.by.Refuse(t)
	if why != "" {
		c.request.Reply(results.Error(why), nil)
	}
	return why != ""
}

// refuseInput answers a call whose input does not fit the schema of its tool.
func (c *toolCall) refuseInput(t *catalog.Tool) bool {
	wrong := t.Input.Check(c.input)
	if wrong == nil {
		return false
	}
	text := fmt.Sprintf("The arguments do not fit the schema of %s:\n- %s", c.name, strings.Join(wrong, "\n- "))
	if c.session.tree {
		c.request.Reply(nil, transports.Refusal(wire.CodeInvalidParams, text, transports.NotSent))
	} else {
		c.request.Reply(results.Error(text+"\n"+c.by.Check(c.name)+" (outcome not_sent: nothing was called)"), nil)
	}
	return true
}

// sendLater sends a call of a tool that the view does not have once what may bring it is
// listed: its server may not be yet, or its list is being fetched again.
func (c *toolCall) sendLater(server string) {
	if c.waited {
		c.refuseUnknown()
		return
	}
	c.input = bytes.Clone(c.input) // it is part of the host's line
	c.session.whenListed(c.request, surface.Question{
		Server: server,
		Known: func() bool {
			t, _ := c.find()
			return t != nil
		},
		Answer: func() {
			c.params.all, c.waited = c.request.Params, true
			c.send()
		},
	}, c.by != nil)
}

// refuseUnknown answers a call of a tool that there is not.
func (c *toolCall) refuseUnknown() {
	s := c.session
	switch {
	case c.by == nil:
		c.sendUnknown()
	case c.by.Unknown != nil:
		c.request.Reply(results.Error(c.by.Unknown(s.view(), c.name)), nil)
	default:
		c.request.Reply(results.Error(surface.UnknownTool(surfaceCall{session: s}, c.name)), nil)
	}
}

// sendUnknown takes a call by a name that no surface shows. If the tools of a wrapped
// server are shown as themselves, an unknown one is that server's business, unless a
// filter decides which there are.
func (c *toolCall) sendUnknown() {
	s, r := c.session, c.request
	if u := s.single(); u != nil && s.surface().Direct && len(u.Server.ToolFilter) == 0 {
		s.dispatch(r, route{upstream: u, params: r.Params, task: c.params.task})
		return
	}
	refusal := s.onlyTask(r.Era, c.name)
	if refusal == nil {
		refusal = invalid("%s", s.surface().NotShown(s.views()[catalog.NoTasks], c.name))
	}
	r.Reply(nil, refusal)
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
