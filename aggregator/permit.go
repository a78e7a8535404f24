package aggregator

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/internal/policy"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// Every call of a tool goes through passesPolicy once, on the replica of its host: after the filters and
// before anything is sent or started. A call that is sent again, after a login or with answers
// of the host, was judged before.

// passesPolicy reports whether the policy allows the call now. If not, the call was refused, or its
// host is asked and the call is sent when a person has allowed it. shown is the name of the
// tool for people.
func (c *toolCall) passesPolicy(server, tool, shown, class string) bool {
	rules := c.agg.state.Load().policy
	if rules == nil {
		return true
	}
	call := c.policyCall(server, tool, class)
	v := rules.Judge(call)
	if v.Do == schema.PolicyAllow || c.permitted && v.Do == schema.PolicyAsk {
		return true
	}
	if v.Do == schema.PolicyDeny {
		c.deny(call, v.Rule, v.Because(shown), "do without it, or have your user change that rule of the config")
		return false
	}
	return c.allowedByPerson(call, &permit.Question{
		Of: c.LoginOwner(), Persistent: c.Persistent, Principal: call.Principal,
		Rules: rules, Verdict: v, Server: server, Tool: shown, Arguments: call.Arguments,
	})
}

// policyCall returns the call for the rules of the policy.
func (c *toolCall) policyCall(server, tool, class string) *policy.Call {
	s := c.session
	call := &policy.Call{Server: server, Tool: tool, Class: class, Principal: s.User, Host: s.Info().Host, Surface: c.surfaceName(), Arguments: c.input}
	if c.verbatim() {
		call.Arguments = c.params.Arguments.In(c.params.All)
	}
	return call
}

// surfaceName returns the surface through which the tool is called, "api" for the tree's API.
func (c *toolCall) surfaceName() string {
	switch {
	case c.TreeOnly:
		return "api"
	case c.by != nil:
		return c.by.Surface
	}
	return schema.ExposeDirect
}

// allowedByPerson reports whether a person has allowed the call. If not, the call was refused, or the
// host is asked.
func (c *toolCall) allowedByPerson(call *policy.Call, q *permit.Question) bool {
	s, r := c.session, c.r
	if r.Era == transports.Stateless {
		state, _ := wire.Text(wire.Get(c.params.All, "requestState"))
		if s.agg.calls.States.Continues(state, call.Principal, call.Server) {
			return true // dispatch sees that it is the same call
		}
	}
	because := q.Verdict.Because(q.Tool)
	if err := q.Prepare(); err != nil {
		c.deny(call, q.Verdict.Rule, fmt.Sprintf("%s, who cannot judge its arguments: %v", because, err), "write the arguments so that they can be read in one way only")
		return false
	}
	if err, answered := s.agg.permits.Answered(q); answered {
		if err != nil {
			c.deny(call, q.Verdict.Rule, because+": "+err.Error(), "do not call it again unless your user asks for it")
		}
		return err == nil
	}
	if lacking := q.Lacks(s.Capabilities(r.Era, r.Meta)); lacking != "" {
		c.deny(call, q.Verdict.Rule, because+", and "+lacking, fmt.Sprintf(`to allow it, have your user put {"match": %s, "do": "allow"} before that rule of the config`, wire.Quote(call.Server+"/"+call.Tool)))
		return false
	}
	if r.Era == transports.Stateless {
		r.Reply(s.agg.permits.Result(q), nil)
		return false
	}
	c.copyLine(call, q)
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		if err := s.agg.permits.Ask(ctx, r.Peer, q); err != nil {
			c.deny(call, q.Verdict.Rule, because+": "+err.Error(), "do not call it again unless your user asks for it")
			return
		}
		c.permitted = true
		c.send()
	})
	return false
}

// copyLine copies the parts of the host's line that the call refers to.
func (c *toolCall) copyLine(call *policy.Call, q *permit.Question) {
	c.r.CopyParams()
	c.params.All, c.input = bytes.Clone(c.params.All), bytes.Clone(c.input)
	call.Arguments = bytes.Clone(call.Arguments)
	q.Arguments = call.Arguments
}

// deny answers a call that a rule of the policy refuses.
func (c *toolCall) deny(call *policy.Call, rule int, because, hint string) {
	s, r := c.session, c.r
	if s.agg.observation.Enabled() {
		now := time.Now()
		r.Counted = true
		s.agg.observation.Ended(observe.CallEnd{
			Session: s.ID, Upstream: call.Server, Method: r.Method, Tool: call.Tool, Began: now, End: now, Kind: "denied", Outcome: transports.NotSent,
			Asked: len(c.params.All), From: s.Info(), Surface: call.Surface, Rule: rule, Params: fmt.Appendf(nil, `{"arguments":%s}`, cmp.Or(string(call.Arguments), "{}")),
		})
	}
	c.fail(&transports.Failure{
		Upstream: call.Server, Code: transports.CodeDenied, Outcome: transports.NotSent, Cause: errors.New(because), Hint: hint,
	}, c.asText())
}
