package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/modules/scripts/engine"
	"github.com/dynmcp/dynmcp/modules/scripts/script"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// answer answers a call of the script.
func (run *running) answer(ctx context.Context, call script.Call) (json.RawMessage, *script.Failure) {
	var result json.RawMessage
	var err error
	server, tool := "", ""
	switch call.Kind {
	case engine.Tool:
		server, tool, _ = strings.Cut(call.Name, "/")
		params := fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, wire.Quote(call.Name), call.Args)
		to := run.target()
		result, err = run.do(ctx, "tools/call", params, func(by *caller, r *host.Request) { by.SendInner(r, to) })
	case engine.Resource:
		result, err = run.do(ctx, "resources/read", fmt.Appendf(nil, `{"uri":%s}`, wire.Quote(call.Name)), func(by *caller, r *host.Request) { by.SendInner(r, nil) })
	default:
		ask := search
		if call.Kind == engine.Describe {
			ask = describe
		}
		result, err = run.do(ctx, "tools/list", nil, func(by *caller, r *host.Request) {
			s := by.Inner(r)
			s.Go(func() { s.Wait(ask(s, call.Name)) })
		})
		result = text(result)
	}
	if err != nil {
		return nil, failure(err, server, tool)
	}
	return result, nil
}

// text returns the first text of a result, as a JSON string.
func text(result json.RawMessage) json.RawMessage {
	for item := range wire.Elements(wire.Get(result, "content")) {
		return wire.Get(item, "text")
	}
	return json.RawMessage(`""`)
}

func search(s surface.Session, words string) surface.Question {
	return surface.Question{Answer: func() {
		s.Reply(results.Text(s.View().Texts().Found(catalog.Search{Queries: []string{words}, Shown: s.Show})), nil)
	}}
}

func describe(s surface.Session, name string) surface.Question {
	found := func() *catalog.Tool {
		t, _ := find(s.View(), name)
		return t
	}
	_, server := find(s.View(), name)
	return surface.Question{Server: server, Missing: name, Known: func() bool { return found() != nil }, Answer: func() {
		t := found()
		if t == nil {
			s.Reply(nil, transports.InvalidParams("%s", surface.UnknownTool(s, name)))
			return
		}
		s.Show(t)
		s.Reply(results.Text(s.View().Texts().Details(t)), nil)
	}}
}

// target defines how scripts call tools: as use_tool does, but only tools that the config allows.
func (run *running) target() *surface.Target {
	return &surface.Target{Surface: schema.ExposeDiscover, Way: way{run: run}, Program: true} // rules for use_tool apply
}

type way struct {
	surface.AnyTool
	run *running
}

func (way) Find(v *catalog.View, name string) (*catalog.Tool, string) { return find(v, name) }

func (w way) Reject(t *catalog.Tool) string {
	if w.run.allowed.Passes(t.Server+"/"+t.Upstream, t.Access) {
		return ""
	}
	return fmt.Sprintf(`scripts may not call %s, only %s. Call it by use_tool {"tool_name": %s, "tool_input": {…}}`,
		t.Name, strings.Join(w.run.limits.Tools, ", "), wire.Quote(t.Name))
}

// find returns the tool for a name in a script. The name may have _ in place of characters that
// identifiers cannot have, if that is unambiguous.
func find(v *catalog.View, name string) (t *catalog.Tool, server string) {
	if t, ok := v.Tool(name); ok {
		return t, t.Server
	}
	server, leaf, _ := strings.Cut(name, "/")
	tools := v.ServerTools(server)
	var names []string
	for _, t := range tools {
		names = append(names, t.Name[strings.IndexByte(t.Name, '/')+1:]) // tools of a single server have no prefix
	}
	if i := engine.Named(leaf, names); i >= 0 {
		return tools[i], server
	}
	if len(tools) == 0 {
		server = v.ServerFor(name)
	}
	return nil, server
}

// failure converts an error to the form that a script catches.
func failure(err error, server, tool string) *script.Failure {
	f := &script.Failure{Message: err.Error(), Server: server, Tool: tool, Outcome: engine.Unknown}
	rpc, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return f
	}
	f.Message, f.Outcome = rpc.Message, engine.Ran
	if outcome, ok := transports.OutcomeOf(rpc); ok {
		f.Outcome = string(outcome)
	}
	if hint := transports.HintOf(rpc); hint != "" {
		f.Message += "\nhint: " + hint
	}
	return f
}
