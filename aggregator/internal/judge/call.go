package judge

import (
	"bytes"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/permit"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A Call is a call of an upstream's tool: by its own name, through a tool of dynmcp, or in the
// arguments of one.
type Call struct {
	Scope   scope.Scope
	Request *host.Request
	Params  call.Params     // as the host sent them
	By      *surface.Target // how the tool is called; nil is by its name on the direct surface
	Name    string          // in the form that By uses
	Input   json.RawMessage // the tool's arguments, unless the call is verbatim; mostly a part of Params

	Waited    bool // for what a verdict named; Params are a copy then
	Permitted bool // by a person

	Tool    *catalog.Tool  // set by the rule "known"; nil for a tool that a wrapped server may have without listing it
	Wrapped *lazy.Upstream // the upstream of such a tool
	Judged  *rule.Call     // as the policy saw it; nil without a policy
	Changed []string       // changes that made the input fit its schema

	fitted   bool
	question *permit.Question // that the policy wants asked
}

// Verbatim reports whether the params are sent unchanged except for the name. Input is not used
// then.
func (c *Call) Verbatim() bool { return c.By == nil || c.By.Verbatim }

// IsProgram reports whether no model reads the answer.
func (c *Call) IsProgram() bool { return c.By != nil && c.By.Program }

// AsText reports whether failures are answered as text for a model.
func (c *Call) AsText() bool {
	return !c.Verbatim() && !c.Scope.TreeOnly && !c.By.Program
}

// SurfaceName returns the surface through which the tool is called, "api" for the tree's API.
func (c *Call) SurfaceName() string {
	switch {
	case c.Scope.TreeOnly:
		return "api"
	case c.By != nil:
		return c.By.Surface
	}
	return schema.ExposeDirect
}

// Find returns the tool of the call, or nil if the session does not see it: then server is the
// server of the tool, "" if that is not known.
func (c *Call) Find() (t *catalog.Tool, server string) {
	switch view := c.Scope.View(); {
	case c.By != nil:
		return c.By.Way.Find(view, c.Name)
	case c.Scope.Surface().Direct:
		if t, _ = view.Direct(c.Name); t == nil && !c.passesUnknown() {
			return nil, view.ServerOfDirect(c.Name)
		}
	}
	return t, ""
}

// passesUnknown reports whether calls of unknown tools are sent to the server: if the tools of a
// wrapped server are shown as themselves, unless a filter or a lock selects them.
func (c *Call) passesUnknown() bool {
	u := c.Scope.Single()
	return u != nil && c.Scope.Surface().Direct && len(u.Server.ToolFilter) == 0 && approval.Needed(u.Server) != approval.Block
}

// forPolicy returns the call for the rules of the policy, and the name of its tool for people.
func (c *Call) forPolicy() (_ *rule.Call, shown string) {
	s := c.Scope
	of := &rule.Call{Principal: s.User, Host: s.Info().Host, Surface: c.SurfaceName(), Arguments: c.Input}
	if c.Verbatim() {
		of.Arguments = c.Params.Arguments.In(c.Params.All)
	}
	if t := c.Tool; t != nil {
		of.Server, of.Tool, of.Class = t.Server, t.Upstream, t.Class
		return of, t.Name
	}
	of.Server, of.Tool, of.Class = c.Wrapped.Server.Name, c.Name, toolglob.Classes[toolglob.Destructive]
	return of, c.Name
}

// Copy copies the parts of the host's line that the call and a question about it refer to.
func (c *Call) Copy(q *permit.Question) {
	c.Params.All, c.Input = bytes.Clone(c.Params.All), bytes.Clone(c.Input)
	c.Judged.Arguments = bytes.Clone(c.Judged.Arguments)
	q.Arguments = c.Judged.Arguments
}
