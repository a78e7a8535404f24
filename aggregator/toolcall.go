package aggregator

import (
	"bytes"
	"cmp"
	"context"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/judge"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A toolCall is a call of a tool of ours, or of one of an upstream, which the judge lets run or not.
type toolCall struct {
	request
	judge.Call
	observed *observe.BuiltinCall // of a tool of ours; nil without an observer, and for a part
}

// toolCall reads a tools/call of the host or, if by is not nil, one in the arguments of a
// tool of ours. It returns nil if the call is not for a tool of an upstream: it was answered
// then, or will be.
func (q request) toolCall(by *surface.Target) *toolCall {
	r := q.r
	c := &toolCall{request: q, Call: judge.Call{Scope: q.Scope, Request: r, By: by}}
	name, arguments, err := r.Outline.FindStrict(r.Params, "name", "arguments")
	if err != nil {
		r.Reply(nil, transports.InvalidParams("tools/call: %v", err))
		return nil
	}
	c.Params = call.Params{All: r.Params, Name: name, Arguments: arguments, Task: r.Outline.Get(r.Params, "task") != nil}
	rawName := name.In(r.Params)
	if by == nil || by.Nested {
		if t := q.Surface().Tool(rawName, len(c.agg.config().Pin) > 0); t != nil {
			return c.readSurfaceTool(t)
		}
	}
	var ok bool
	if c.Name, ok = wire.Text(rawName); !ok {
		r.Reply(nil, transports.InvalidParams(`tools/call needs a string "name"`))
		return nil
	}
	if by == nil {
		if means := c.agg.opts.Extensions.Call(c.session, c.Name, arguments.In(r.Params)); means != nil {
			return c.readExtensionCall(means)
		}
		return c
	}
	if c.Input = arguments.In(r.Params); c.Input != nil && !wire.IsObject(c.Input) {
		r.Reply(nil, transports.InvalidParams(`tools/call: "arguments" must be an object, not %s`, wire.TypeName(c.Input)))
		return nil
	}
	return c
}

// readSurfaceTool reads a call of a tool of ours. It returns the call of an upstream's tool
// that this means, or nil if the tool answers by itself.
func (c *toolCall) readSurfaceTool(t *surface.Tool) *toolCall {
	arguments := c.Params.Arguments.In(c.Params.All)
	own := func() *surface.Call {
		c.observed = c.agg.observation.BeginBuiltin(c.SurfaceName(), t.Name, arguments)
		return &surface.Call{Session: c, Tool: t.Name, Arguments: arguments}
	}
	if t.Answer != nil {
		t.Answer(own())
		return nil
	}
	var err error
	c.By = t.Target
	if c.Name, c.Input, err = t.Read(arguments, c.r.Outline); err != nil {
		own().InvalidArguments(err)
		return nil
	}
	return c
}

// send has the call judged. It is sent, or waits and is judged again, or is answered.
func (c *toolCall) send() {
	switch v := c.agg.judge.Judge(&c.Call); v.Do {
	case judge.Run:
		c.agg.calls.Dispatch(c.Session, c.r, c.route())
	case judge.Wait:
		c.await(v.Wait)
	case judge.Ask:
		c.ask(v.Question)
	default:
		c.refuse(&v)
	}
}

// route returns the destination of the call, the upstream of its tool.
func (c *toolCall) route() forward.Route {
	to := forward.Route{Upstream: c.Wrapped, Params: c.r.Params, Task: c.Params.Task, Surface: c.SurfaceName()}
	t := c.Tool
	if t == nil {
		return to
	}
	to.Upstream, to.Tool, to.AsText, to.Whole, to.Changed = c.agg.set.Get(t.Server), t, c.AsText(), c.IsProgram(), c.Changed
	if c.By != nil && c.By.ShowsInput {
		to.Input = c.By.Way
	}
	if c.Verbatim() {
		to.SetParams(c.Params.Of(t.Upstream))
		return to
	}
	if t.HasView && c.agg.opts.Extensions.Keeps(c.session, t, to.Surface) {
		to.Kept = bytes.Clone(c.Input)
	}
	to.SetParams(c.Params.With(t.Upstream, c.Input))
	c.r.Params, c.r.Outline = nil, nil // With may reuse their memory
	return to
}

// await has the call judged again after what it waits for.
func (c *toolCall) await(w judge.Awaited) {
	c.Input = bytes.Clone(c.Input) // it is part of the host's line
	if w.Schema {
		c.Params.All, c.Waited = bytes.Clone(c.Params.All), true
		leave := c.agg.calls.Join(c.Session, c.r, c.agg.set.Get(w.Server))
		c.agg.work.Answer(c.r, func() {
			defer leave()
			c.send()
		})
		return
	}
	c.answer(surface.Question{
		Server: w.Server, Missing: w.Missing,
		Known: func() bool {
			t, _ := c.Find()
			return t != nil && c.Tool == nil // otherwise only its list ends the wait
		},
		Answer: func() {
			c.Params.All, c.Waited = c.r.Params, true
			c.send()
		},
	}, c.By != nil && !c.By.Program)
}

// ask has a person asked about the call.
func (c *toolCall) ask(q *permit.Question) {
	permits, r := &c.agg.judge.Permits, c.r
	if r.Era == transports.Stateless {
		r.Reply(permits.Result(q), nil)
		return
	}
	r.CopyParams()
	c.Copy(q)
	c.agg.work.AnswerWithin(r, func(ctx context.Context) {
		if err := permits.Ask(ctx, r.Peer, q); err != nil {
			c.refuse(c.Declined(q, err))
			return
		}
		c.Permitted = true
		c.send()
	})
}

// refuse answers a call that is not sent.
func (c *toolCall) refuse(v *judge.Verdict) {
	if of := c.Judged; v.Denied > 0 && c.agg.observation.Enabled() {
		c.r.Counted = true
		c.observeUnsent(event.Call{
			Upstream: of.Server, Tool: of.Tool, Kind: "denied", Outcome: transports.NotSent, Asked: len(c.Params.All), Surface: of.Surface,
			Rule: v.Denied, Arguments: []byte(cmp.Or(string(of.Arguments), "{}")),
		})
	}
	switch refusal := v.Refusal.(type) {
	case judge.Text:
		c.r.Reply(results.Refusal(string(refusal)), nil)
	case *wire.Error:
		c.r.Reply(nil, refusal)
	default:
		c.fail(refusal, c.AsText())
	}
}
