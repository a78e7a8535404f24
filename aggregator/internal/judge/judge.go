// Package judge decides whether a call of an upstream's tool runs. Its one table of rules
// applies to every call: by a name of the host's own list, through a tool of dynmcp, inside the
// arguments of one, or by a script.
package judge

import (
	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Rule is one line of the table of rules.
type Rule struct {
	Name string
	Says string // what has to be true for a call to run

	// arrived judges a call when it arrives, and again after each wait; nil means that the rule
	// is kept elsewhere, as Says tells.
	arrived func(*Env, *Call) *Verdict
	// ready judges a call when the connection that it is sent over is ready.
	ready func(*Env, sending) error
}

// Rules are the rules in their order: the first one that a call breaks decides.
var Rules = [...]Rule{
	{"known", "A server has the tool. A call waits for a server that is not listed yet, and for a list that is being fetched again.", known, nil},
	{"shown", "The session's profile, `tool_filter`, `pins` and `policy` leave the tool in its lists.", nil, nil},
	{"approved", "With `pins`: the server that runs lists the tool as it was approved.", settled, approved},
	{"surface", "The way of the call may call the tool: a split `use_tool` those of its class, a script those that it is allowed.", callable, nil},
	{"allowed", "The `policy` does not deny the call.", allowed, nil},
	{"unchanged", "With `catalog.on_change`: the definition is the one that the model was shown.", nil, unchanged},
	{"fits", "The surface `tree`: the arguments fit the schema. Others leave that to the server.", fits, nil},
	{"limits", "A place is free of `max_calls`, `rate` and `max_held_bytes`. A call waits for one as long as its `timeout`.", nil, nil},
	{"permitted", "A person said yes, if the `policy` asks for one.", permitted, nil},
}

// Do is what happens to a call.
type Do int

const (
	Run    Do = iota // it is sent
	Wait             // it is judged again after the verdict's Wait
	Ask              // a person is asked the verdict's Question; after a yes it is judged again
	Refuse           // it is answered with the verdict's Refusal
)

// A Verdict is the decision about a call.
type Verdict struct {
	Do       Do
	Wait     Awaited
	Question *permit.Question
	Refusal  error // a Text, a *transports.Failure or a *wire.Error
	Denied   int   // the rule of the policy that refused the call, or by which a person did; 0 is none
}

// Awaited is what a call waits for.
type Awaited struct {
	Schema  bool   // the check of the input is compiled
	Server  string // otherwise the list of this server, "" for all
	Missing string // the tool that the list is searched for, "" if the tool is known
}

// Text refuses a call with a text for the model.
type Text string

func (t Text) Error() string { return string(t) }

// Served is what the judge needs of the run. It follows the config.
type Served interface {
	// Policy returns the rules of the policy; nil allows every call.
	Policy() rule.Rules
	// OnChange returns what happens to a call of a tool that has changed, one of schema.OnChange….
	OnChange() string
	// Guard returns the approved tools of a server; nil approves all.
	Guard(server string) approval.Guard
	// Settling reports whether a list of the server is awaited for this session.
	Settling(s scope.Scope, server string) bool
	// Offered reports whether a server was not evicted.
	Offered(server string) bool
	// UnknownTool and UnknownServer answer a name that a session does not see.
	UnknownTool(s scope.Scope, name string) string
	UnknownServer(s scope.Scope, name string) string
}

// An Env judges all calls of a run.
type Env struct {
	Served  Served
	Permits permit.Permits
	States  *ask.States
}

// Judge returns the verdict of the first rule that does not let the call run.
func (e *Env) Judge(c *Call) Verdict {
	for i := range Rules {
		if judge := Rules[i].arrived; judge != nil {
			if v := judge(e, c); v != nil {
				return *v
			}
		}
	}
	return Verdict{Do: Run}
}

// A sending is a call that is about to be sent.
type sending struct {
	scope.Scope
	*forward.Call
	conn   *upstream.Conn
	waited bool
}

// Ready returns an error if a call must not be sent over a connection. waited reports that the
// call waited for it, so that the upstream may have listed its tools again meanwhile.
func (e *Env) Ready(s scope.Scope, c *forward.Call, conn *upstream.Conn, waited bool) error {
	call := sending{s, c, conn, waited}
	for i := range Rules {
		if judge := Rules[i].ready; judge != nil {
			if err := judge(e, call); err != nil {
				return err
			}
		}
	}
	return nil
}
