package judge

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// refuse refuses a call with a text, which is an error of its params for a program.
func (c *Call) refuse(text string) *Verdict {
	if c.IsProgram() {
		return &Verdict{Do: Refuse, Refusal: transports.InvalidParams("%s", text)}
	}
	return &Verdict{Do: Refuse, Refusal: Text(text)}
}

// known finds the tool in the view from which tools are listed, so that a tool that is hidden
// cannot be called.
func known(e *Env, c *Call) *Verdict {
	t, server := c.Find()
	if t == nil {
		t = catalog.Denied(c.Scope.View(), strings.TrimPrefix(c.Name, "/")) // a rule of the policy answers
	}
	c.Tool, c.Wrapped = t, nil
	switch {
	case t != nil && e.Served.Offered(t.Server):
		return nil
	case t != nil:
		return c.refuse(e.Served.UnknownServer(c.Scope, t.Server))
	case !c.Waited:
		wait := Awaited{Server: server}
		if surface.Named(c.Scope.View(), c.Name) == nil { // otherwise it is misspelled
			wait.Missing = c.Name
		}
		return &Verdict{Do: Wait, Wait: wait}
	case c.By != nil:
		return c.refuse(cmp.Or(c.By.Way.Unknown(c.Scope.View(), c.Name), e.Served.UnknownTool(c.Scope, c.Name)))
	case c.passesUnknown():
		c.Wrapped = c.Scope.Single()
		return nil
	}
	shown := c.Scope.Surface()
	if shown.Direct {
		if refusal := task.OnlyTask(c.Scope.Views(), c.Request.Era, c.Name); refusal != nil {
			return &Verdict{Do: Refuse, Refusal: refusal}
		}
	}
	return &Verdict{Do: Refuse, Refusal: transports.InvalidParams("%s", shown.NotShown(c.Scope.Plain(), c.Name))}
}

// settled makes a call of a tool that has to be approved wait for a list that is being fetched
// again: it may show that the tool has changed.
func settled(e *Env, c *Call) *Verdict {
	if c.Tool == nil || !c.Tool.Guarded || c.Waited || !e.Served.Settling(c.Scope, c.Tool.Server) {
		return nil
	}
	return &Verdict{Do: Wait, Wait: Awaited{Server: c.Tool.Server}}
}

// approved compares the tool as the connection lists it with the approved one. An upstream of
// one owner may list other tools than the catalogue has.
func approved(e *Env, s sending) error {
	server, tool := s.Route.Upstream.Server.Name, ""
	switch t := s.Route.Tool; {
	case t != nil && t.Guarded:
		tool = t.Upstream
	case s.Route.Link != nil && s.Method == "tools/call":
		tool, _ = wire.Text(wire.Get(s.Route.Params, "name"))
	default:
		return nil
	}
	guard := e.Served.Guard(server)
	if !approval.Blocks(guard) || guard.Approves(definition.Tool{Name: tool, Digest: s.Call.Server.Listing.Digest(s.conn, tool)}) {
		return nil
	}
	return guard.NotApproved(tool, "")
}

// callable refuses a tool that the surface does not call.
func callable(e *Env, c *Call) *Verdict {
	t := c.Tool
	if t == nil {
		return nil
	}
	if c.By != nil {
		if why := c.By.Way.Reject(t); why != "" {
			return c.refuse(why)
		}
	}
	if c.AsText() && t.OnlyTask && c.Request.Era == transports.Handshake && !c.Params.Task {
		return c.refuse(fmt.Sprintf("%s runs only as a task (MCP tasks), which a call of use_tool is not: call it by its own name, %s.", t.Name, t.Direct))
	}
	return nil
}

// allowed asks the policy about the arguments that would be sent.
func allowed(e *Env, c *Call) *Verdict {
	if v := fit(c); v != nil {
		return v
	}
	c.question = nil
	rules := e.Served.Policy()
	if rules == nil {
		return nil
	}
	of, shown := c.forPolicy()
	c.Judged = of
	v, err := rule.Judge(rules, of)
	switch {
	case err != nil:
		return c.deny(0, err.Error(), "ask the user to report it")
	case v.Do == schema.PolicyDeny:
		return c.deny(v.Rule, v.Because(shown), "ask the user to change that rule")
	case v.Do == schema.PolicyAsk:
		c.question = &permit.Question{
			Of: c.Scope.LoginOwner(), Persistent: c.Scope.Persistent, Principal: of.Principal,
			Rules: rules, Verdict: v, Server: of.Server, Tool: shown, Arguments: of.Arguments,
		}
	}
	return nil
}

// deny refuses a call because of a rule of the policy.
func (c *Call) deny(rule int, because, hint string) *Verdict {
	return &Verdict{Do: Refuse, Denied: rule, Refusal: &transports.Failure{
		Upstream: c.Judged.Server, Code: transports.CodeDenied, Outcome: transports.NotSent, Cause: errors.New(because), Hint: hint,
	}}
}

// fit replaces strings of the input by the values in them that the schema wants, once. The check of the
// surface has to be compiled for that.
func fit(c *Call) *Verdict {
	t := c.Tool
	if t == nil || c.By == nil || c.fitted || !c.By.ShowsInput && !c.By.Checks {
		return nil
	}
	if c.By.Checks && !c.Waited && !t.Input.Compiled() {
		return &Verdict{Do: Wait, Wait: Awaited{Schema: true, Server: t.Server}}
	}
	outline := c.Request.Outline
	if c.Waited { // the next line of the host may have it
		outline = nil
	}
	c.Input, c.Changed = t.Input.Fit(c.Input, outline)
	c.fitted = true
	return nil
}

// unchanged compares the definition of the tool with the one that the session was shown.
func unchanged(e *Env, s sending) error {
	t := s.Route.Tool
	if t == nil {
		return nil
	}
	shown := s.Shown.Last(t.Name)
	if shown == nil && !s.waited {
		return nil
	}
	now, ok := s.Scope.View().Tool(t.Name)
	if t.OnlyViews {
		now = s.Scope.View().Upstream(t.Server, t.Upstream)
		ok = now != nil
	}
	mode := e.Served.OnChange()
	switch {
	case !ok && s.Route.AsText:
		return Text(e.Served.UnknownTool(s.Scope, t.Name))
	case !ok:
		return transports.InvalidParams("%s", s.Scope.Surface().NotShown(s.Scope.Plain(), t.Direct))
	case mode == schema.OnChangeIgnore || shown == nil || meanTheSame(now, shown):
		return nil
	}
	return s.changed(now, shown, mode)
}

// changed returns the failure of a call of a tool that has changed. Unless the mode is to block,
// the session is shown the new definition with it.
func (s sending) changed(now, shown *catalog.Tool, mode string) error {
	failure := &transports.Failure{
		Upstream: now.Server, Code: transports.CodeChanged, Outcome: transports.NotSent,
		Cause:   fmt.Errorf("the definition of %s has changed since it was shown", now.Name),
		Hint:    "see that the input fits the definition below, then call again",
		Details: changes(now, shown),
	}
	if mode != schema.OnChangeBlock {
		s.Shown.Add(now)
		return failure
	}
	failure.Hint = "list the tools again, then call again"
	if how := s.Scope.Surface().Text(func(t surface.Texts) string { return t.HowToRead(now.Name) }); how != "" {
		failure.Hint = "read it again with " + how + ", then call again"
	}
	return failure
}

// fits refuses input that does not fit the schema, on surfaces that check it.
func fits(e *Env, c *Call) *Verdict {
	if c.Tool == nil || c.By == nil || !c.By.Checks {
		return nil
	}
	wrong := c.Tool.Input.Check(c.Input)
	if wrong == nil {
		return nil
	}
	text := fmt.Sprintf("The arguments do not fit the schema of %s\n- %s", c.Name, strings.Join(wrong, "\n- "))
	if c.Scope.TreeOnly {
		return &Verdict{Do: Refuse, Refusal: transports.InvalidParams("%s", text)}
	}
	return c.refuse(text + "\n" + c.By.Way.HowToFit(c.Name))
}

// permitted has a person asked about a call, unless one has answered.
func permitted(e *Env, c *Call) *Verdict {
	q, r := c.question, c.Request
	if q == nil || c.Permitted {
		return nil
	}
	if r.Era == transports.Stateless {
		state, _ := wire.Text(wire.Get(c.Params.All, "requestState"))
		if e.States.Continues(state, q.Principal, q.Server) {
			return nil // forward sees that it is the same call
		}
	}
	because := q.Verdict.Because(q.Tool)
	if err := q.Prepare(); err != nil {
		return c.deny(q.Verdict.Rule, fmt.Sprintf("%s, who cannot judge its arguments: %v", because, err), "write the arguments so that they can be read in one way only")
	}
	if err, answered := e.Permits.Answered(q); answered {
		if err != nil {
			return c.Declined(q, err)
		}
		return nil
	}
	if lacking := q.Lacks(c.Scope.Capabilities(r.Era, r.Meta)); lacking != "" {
		return c.deny(q.Verdict.Rule, because+", and "+lacking,
			fmt.Sprintf(`to allow it, have your user put {"match": %s, "do": "allow"} before that rule of the config`, wire.Quote(c.Judged.Server+"/"+c.Judged.Tool)))
	}
	return &Verdict{Do: Ask, Question: q}
}

// Declined is the verdict after a question that was not answered with yes.
func (c *Call) Declined(q *permit.Question, err error) *Verdict {
	return c.deny(q.Verdict.Rule, q.Verdict.Because(q.Tool)+": "+err.Error(), "do not call it again unless your user asks for it")
}
