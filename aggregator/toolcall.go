package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A toolCall is a call of a tool of an upstream: by its own name, through a tool of ours,
// or in the arguments of one.
type toolCall struct {
	request
	params call.Params     // as the host sent them
	by     *surface.Target // how the tool is called; nil is by its name on the direct surface
	name   string          // in the form that by uses
	input  json.RawMessage // the tool's arguments; mostly a part of params

	changed   []string // changes that made the input fit its schema
	permitted bool     // by a person
	waited    bool     // for a list, or for the schema to be compiled; params is a copy then
}

// verbatim reports whether the params are sent unchanged except for the name. input is not
// used then.
func (c *toolCall) verbatim() bool { return c.by == nil || c.by.Verbatim }

// toolCall reads a tools/call of the host or, if by is not nil, one in the arguments of a
// tool of ours. It returns nil if the call is not for a tool of an upstream: it was answered
// then, or will be.
func (q request) toolCall(by *surface.Target) *toolCall {
	c, r := &toolCall{request: q, by: by}, q.r
	name, arguments, err := r.Outline.FindStrict(r.Params, "name", "arguments")
	if err != nil {
		r.Reply(nil, invalid("tools/call: %v", err))
		return nil
	}
	c.params = call.Params{All: r.Params, Name: name, Arguments: arguments, Task: r.Outline.Get(r.Params, "task") != nil}
	rawName := name.In(r.Params)
	if by == nil || by.Nested {
		if t := c.Surface().Tool(rawName, len(c.agg.config().Pin) > 0); t != nil {
			return c.readSurfaceTool(t)
		}
	}
	var ok bool
	if c.name, ok = wire.Text(rawName); !ok {
		r.Reply(nil, invalid(`tools/call needs a string "name"`))
		return nil
	}
	if by == nil {
		return c
	}
	if c.input = arguments.In(r.Params); c.input != nil && !wire.IsObject(c.input) {
		r.Reply(nil, invalid(`tools/call: "arguments" must be an object, not %s`, wire.TypeName(c.input)))
		return nil
	}
	return c
}

// readSurfaceTool reads a call of a tool of ours. It returns the call of an upstream's tool
// that this means, or nil if the tool answers by itself.
func (c *toolCall) readSurfaceTool(t *surface.Tool) *toolCall {
	arguments := c.params.Arguments.In(c.params.All)
	call := func() *surface.Call {
		observed := c.agg.observation.BeginBuiltin(c.surfaceName(), t.Name, arguments)
		return &surface.Call{Session: surfaceCall{c.request, c.params.All, observed}, Tool: t.Name, Arguments: arguments}
	}
	if t.Answer != nil {
		t.Answer(call())
		return nil
	}
	var err error
	c.by = t.Target
	if c.name, c.input, err = t.Read(arguments, c.r.Outline); err != nil {
		call().InvalidArguments(err)
		return nil
	}
	return c
}

// send sends the call to the upstream of its tool. The tool is looked up in the view from
// which tools are listed, so a tool that a filter hides cannot be called.
func (c *toolCall) send() {
	s, r := c.session, c.r
	t, server := c.find()
	if t == nil {
		c.sendLater(server, false)
		return
	}
	if t.Guarded && !c.waited && (wait{session: s, server: t.Server, least: callWait}).isPending() {
		c.sendLater(t.Server, true)
		return
	}
	to := forward.Route{Upstream: s.agg.set.Get(t.Server), Tool: t, Task: c.params.Task, AsText: c.asText(), Whole: c.by != nil && c.by.Program, Surface: c.surfaceName()}
	if c.by != nil {
		if c.by.Check != nil && !c.waited && !t.Input.Compiled() {
			c.params.All, c.input, c.waited = bytes.Clone(c.params.All), bytes.Clone(c.input), true
			leave := s.agg.calls.Join(s.Session, r, to.Upstream)
			s.agg.work.Answer(r, func() {
				defer leave()
				c.send()
			})
			return
		}
		if c.by.Reject != nil {
			if why := c.by.Reject(t); why != "" {
				c.refuse(why)
				return
			}
		}
		if to.ShowInput = c.by.ShowInput; to.ShowInput != nil || c.by.Check != nil {
			if !c.permitted { // a permitted call was fitted before
				c.input, c.changed = t.Input.FitNumbers(c.input, r.Outline)
			}
			to.Changed = c.changed
		}
		if c.by.Check != nil && c.rejectInput(t) {
			return
		}
	}
	if !c.passesPolicy(t.Server, t.Upstream, t.Name, toolglob.Classes[t.Access]) {
		return
	}
	switch {
	case !fleet.IsOffered(to.Upstream):
		c.refuse(surface.UnknownServer(surfaceCall{request: c.request}, t.Server))
		return
	case to.AsText && t.OnlyTask && r.Era == transports.Handshake && !to.Task:
		r.Reply(results.Error(fmt.Sprintf("%s runs only as a task (MCP tasks), which a call of use_tool is not: call it by its own name, %s.", t.Name, t.Direct)), nil)
		return
	case !c.verbatim():
		to.SetParams(c.params.With(t.Upstream, c.input))
		r.Params, r.Outline = nil, nil // With may reuse their memory
	default:
		to.SetParams(c.params.Of(t.Upstream))
	}
	s.agg.calls.Dispatch(s.Session, r, to)
}

// asText reports whether failures are answered as text for a model.
func (c *toolCall) asText() bool {
	return !c.verbatim() && !c.TreeOnly && !c.by.Program
}

// refuse answers a call that is not sent.
func (c *toolCall) refuse(text string) {
	if c.by != nil && c.by.Program {
		c.r.Reply(nil, transports.OutcomeError(wire.CodeInvalidParams, text, transports.NotSent))
		return
	}
	c.r.Reply(results.Error(text), nil)
}

// find returns the tool of the call, or nil if the session does not see it: then server is
// the server of the tool, "" if that is not known.
func (c *toolCall) find() (t *catalog.Tool, server string) {
	switch view := c.View(); {
	case c.by != nil:
		return c.by.Find(view, c.name)
	case c.Surface().Direct:
		if t, _ = view.Direct(c.name); t == nil && !c.sendsUnknown() {
			return nil, view.ServerOfDirect(c.name)
		}
	}
	return t, ""
}

// rejectInput refuses the call if its input does not fit the schema of the tool, and reports
// whether it did.
func (c *toolCall) rejectInput(t *catalog.Tool) bool {
	wrong := t.Input.Check(c.input)
	if wrong == nil {
		return false
	}
	text := fmt.Sprintf("The arguments do not fit the schema of %s:\n- %s", c.name, strings.Join(wrong, "\n- "))
	if c.TreeOnly {
		c.r.Reply(nil, transports.OutcomeError(wire.CodeInvalidParams, text, transports.NotSent))
	} else {
		c.r.Reply(results.Error(text+"\n"+c.by.Check(c.name)+" (outcome not_sent: nothing was called)"), nil)
	}
	return true
}

// sendLater sends the call after the server was listed, or its list was fetched again: the
// view may have the tool then. settled makes a call of a known tool wait too.
func (c *toolCall) sendLater(server string, settled bool) {
	if c.waited {
		c.answerUnknown()
		return
	}
	c.input = bytes.Clone(c.input) // it is part of the host's line
	missing := ""
	if !settled && surface.Named(c.View(), c.name) == nil { // otherwise it is misspelled
		missing = c.name
	}
	c.answer(surface.Question{
		Server: server, Missing: missing,
		Known: func() bool {
			t, _ := c.find()
			return t != nil && !settled
		},
		Answer: func() {
			c.params.All, c.waited = c.r.Params, true
			c.send()
		},
	}, c.by != nil && !c.by.Program)
}

// answerUnknown answers a call of a tool that does not exist.
func (c *toolCall) answerUnknown() {
	s := c.session
	switch {
	case c.by == nil:
		c.sendUnknown()
	case c.by.Unknown != nil:
		c.refuse(c.by.Unknown(s.View(), c.name))
	default:
		c.refuse(surface.UnknownTool(surfaceCall{request: c.request}, c.name))
	}
}

// sendsUnknown reports whether calls of unknown tools are sent to the server: if the tools of a
// wrapped server are shown as themselves, unless a filter or a lock selects them.
func (c *toolCall) sendsUnknown() bool {
	u := c.Single()
	return u != nil && c.Surface().Direct && len(u.Server.ToolFilter) == 0 && u.Server.Pins != schema.PinsBlock
}

// sendUnknown answers a call by a name that no surface shows.
func (c *toolCall) sendUnknown() {
	s, r := c.session, c.r
	if c.sendsUnknown() {
		u := s.Single()
		if c.passesPolicy(u.Server.Name, c.name, c.name, toolglob.Classes[catalog.Destructive]) {
			s.agg.calls.Dispatch(s.Session, r, forward.Route{Upstream: u, Params: r.Params, Task: c.params.Task, Surface: c.surfaceName()})
		}
		return
	}
	var refusal *wire.Error
	if s.Surface().Direct {
		refusal = task.OnlyTask(s.Views(), r.Era, c.name)
	}
	if refusal == nil {
		refusal = invalid("%s", s.Surface().NotShown(s.Plain(), c.name))
	}
	r.Reply(nil, refusal)
}

// checkTool returns an error if a call must not be sent to its upstream, which is ready: the
// tool is gone, or its definition differs from the one that the session was shown. waited is
// true if the call waited for the upstream, which may have listed its tools again meanwhile.
func (s session) checkTool(to *forward.Route, waited bool) error {
	t := to.Tool
	if t == nil {
		return nil
	}
	shown := s.Shown.Last(t.Name)
	if shown == nil && !waited {
		return nil
	}
	view := s.View()
	now, ok := view.Tool(t.Name)
	mode := s.agg.config().Catalog.OnChange
	switch {
	case !ok && to.AsText:
		return errors.New(surface.UnknownTool(surfaceCall{request: request{session: s}}, t.Name))
	case !ok:
		return invalid("%s", s.Surface().NotShown(s.Plain(), t.Direct))
	case mode == schema.OnChangeIgnore || shown == nil || now.Same(shown):
		return nil
	}
	failure := &transports.Failure{
		Upstream: t.Server, Code: transports.CodeChanged, Outcome: transports.NotSent,
		Cause:   fmt.Errorf("the definition of %s has changed since it was shown", t.Name),
		Hint:    "see that the input fits the definition below, then call again",
		Details: now.Changes(shown),
	}
	if mode == schema.OnChangeBlock {
		failure.Hint = "list the tools again, then call again"
		if how := s.Surface().HowToRead; how != nil {
			failure.Hint = "read it again with " + how(t.Name) + ", then call again"
		}
		return failure
	}
	s.Shown.Add(now)
	return failure
}
