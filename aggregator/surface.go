package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports/host"
)

// A tool is what a surface puts into a host's tools/list: one tool of ours, or
// many that share a function.
type tool struct {
	name string // of one tool of ours; "" stands for those that find finds
	// definitions returns the entries of tools/list.
	definitions func(v *catalog.View) []json.RawMessage
	// call answers a call.
	call func(s *session, r *host.Request, p callParams)
	// find tells whether a name is one of the many; nil where name is set.
	find func(v *catalog.View, name string) (*catalog.Tool, bool)
}

// The surfaces that a config's expose may name.
var surfaces = map[string]func(*Aggregator, *schema.Config) []tool{
	schema.ExposeDiscover: discoverSurface,
	schema.ExposeDirect:   directSurface,
}

// callTool finds the tool that a host calls.
func (a *Aggregator) callTool(s *session, r *host.Request) {
	rawName, arguments, err := wire.StrictPair(r.Params, "name", "arguments")
	if err != nil {
		r.Reply(nil, invalid("tools/call: %v", err))
		return
	}
	for _, t := range a.state.Load().tools {
		if t.name != "" && wire.EqualString(rawName, t.name) {
			t.call(s, r, callParams{r.Params, arguments})
			return
		}
	}
	name, ok := wire.Text(rawName)
	if !ok {
		r.Reply(nil, invalid(`tools/call needs a string "name"`))
		return
	}
	a.retryWhenListed(r, func() bool { return a.callFound(s, r, name) }, func() { a.callUnknown(s, r, name) })
}

// callFound calls the upstream's tool that a surface shows under a name. Its
// params are the host's but for that name.
func (a *Aggregator) callFound(s *session, r *host.Request, name string) bool {
	view := a.catalog.View()
	for _, t := range a.state.Load().tools {
		if t.find == nil {
			continue
		}
		if found, ok := t.find(view, name); ok {
			params := r.Params
			if found.Upstream != name {
				params = wire.Set(params, "name", wire.Quote(found.Upstream))
			}
			a.callUpstream(s, r, found, params, false)
			return true
		}
	}
	return false
}

// callUnknown answers a call of a tool that no surface shows. Where the tools of
// a wrapped server are shown as themselves it is that server's business.
func (a *Aggregator) callUnknown(s *session, r *host.Request, name string) {
	if u := a.only(); u != nil && a.exposes(schema.ExposeDirect) {
		a.forward(s, r, u, r.Method, r.Params, false)
		return
	}
	r.Reply(nil, invalid("Unknown tool: %s", name))
}

// exposes reports whether a surface is on.
func (a *Aggregator) exposes(surface string) bool {
	return slices.Contains(a.config().Expose, surface)
}

// callUpstream forwards a tools/call with params made for the upstream.
func (a *Aggregator) callUpstream(s *session, r *host.Request, t *catalog.Tool, params json.RawMessage, asText bool) {
	u := a.set.Get(t.Server)
	if !stillThere(u) {
		r.Reply(errorResult(a.catalog.View().UnknownServer(t.Server)), nil)
		return
	}
	a.forward(s, r, u, "tools/call", params, asText)
}

// callParams are the params of a tools/call, and its arguments, nil if there are
// none.
type callParams struct{ all, arguments json.RawMessage }

// with returns the params with another name and other arguments, which may be
// nil; every other byte stays.
func (p callParams) with(name string, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	return wire.SetAll(p.all, wire.Member{Name: "name", Value: wire.Quote(name)}, wire.Member{Name: "arguments", Value: arguments})
}

// directSurface shows every upstream tool as itself.
func directSurface(a *Aggregator, _ *schema.Config) []tool {
	return []tool{{
		definitions: func(v *catalog.View) []json.RawMessage {
			var all []json.RawMessage
			for _, t := range v.Listed() {
				if _, ok := v.Direct(t.Direct); ok {
					all = append(all, v.DefinitionAs(t, t.Direct))
				}
			}
			return all
		},
		find: func(v *catalog.View, name string) (*catalog.Tool, bool) { return v.Direct(name) },
	}}
}

// textResult returns a tool result of one text and, where structured is not
// nil, that as structured content.
func textResult(text string, structured json.RawMessage) json.RawMessage {
	out := fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]`, wire.Quote(text))
	if structured != nil {
		out = append(append(out, `,"structuredContent":`...), structured...)
	}
	return append(out, '}')
}

// errorResult returns a tool result that tells the model what went wrong.
func errorResult(text string) json.RawMessage {
	return wire.Set(textResult(text, nil), "isError", []byte("true"))
}
