package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports/host"
)

// A door is use_tool, or one of the three that it is split into for hosts that ask
// their user by the tool's name.
type door struct {
	name string
	lets catalog.Access // tools that may do no more than this
}

// doors are the tools through which discover calls.
func (a *Aggregator) doors(cfg *schema.Config) []tool {
	through := func(d door, description, annotations string) tool {
		return tool{name: d.name, definitions: fixed(define(d.name, description, useInput, annotations, alwaysLoad)),
			call: func(s *session, r *host.Request, p callParams) { a.useTool(s, r, p, d) }}
	}
	if cfg.UseTool != schema.UseToolSplit {
		return []tool{through(door{"use_tool", catalog.Destructive}, useDescription, "")}
	}
	const say = "Use a tool that was previously discovered with the discover_tool tool"
	return []tool{
		through(door{catalog.Doors[catalog.ReadOnly], catalog.ReadOnly}, say+" and only reads: discover_tool shows through which of three each is called.", `{"readOnlyHint":true}`),
		through(door{catalog.Doors[catalog.Write], catalog.Write}, say+" and changes things, but destroys nothing.", `{"readOnlyHint":false,"destructiveHint":false}`),
		through(door{catalog.Doors[catalog.Destructive], catalog.Destructive}, say+", whatever it may do: those that do not say count as destructive.", `{"readOnlyHint":false,"destructiveHint":true}`),
	}
}

// use returns what calls a tool through the door, if that lets it.
func (d door) use(a *Aggregator) func(s *session, r *host.Request, t *catalog.Tool, c innerCall) {
	return func(s *session, r *host.Request, t *catalog.Tool, c innerCall) {
		if t.Access < d.lets {
			r.Reply(errorResult(fmt.Sprintf(`%s may do more than %s lets through: call it through %s {"tool_name": %s, "tool_input": {…}} (outcome not_sent: nothing was called)`,
				t.Name, d.name, t.Door, wire.Quote(t.Name))), nil)
			return
		}
		a.use(s, r, t, c)
	}
}

// pinned are the tools of servers that discover shows as themselves. Where direct is on,
// all are.
func (a *Aggregator) pinned(cfg *schema.Config) []tool {
	if slices.Contains(cfg.Expose, schema.ExposeDirect) {
		return nil
	}
	var tools []tool
	for _, pin := range cfg.Pin {
		server, leaf, _ := strings.Cut(pin, "/")
		tools = append(tools, tool{name: catalog.DirectName(server, leaf), definitions: func(v *catalog.View, longest int) []json.RawMessage {
			if t, ok := v.Tool(pin); ok {
				return []json.RawMessage{v.DirectDefinition(t, longest)}
			}
			return nil // not yet, or there is no such tool
		}, call: func(s *session, r *host.Request, p callParams) {
			a.callNamed(s, r, innerCall{outer: p}, byName(pin), a.callPinned, func(view *catalog.View) string { return a.unknownTool(s, view, pin) })
		}})
	}
	return tools
}

// callPinned calls a tool that the host has called as itself: with its params but for
// the name.
func (a *Aggregator) callPinned(s *session, r *host.Request, t *catalog.Tool, c innerCall) {
	a.callUpstream(s, r, t, route{params: wire.Set(c.outer.all, "name", wire.Quote(t.Upstream)), task: c.outer.task})
}

// pinWarnings names the pins for which a listed server has no tool.
func pinWarnings(cfg *schema.Config, view *catalog.View) []string {
	var all []string
	for _, pin := range cfg.Pin {
		server, _, _ := strings.Cut(pin, "/")
		info, known := view.Server(server)
		if _, ok := view.Tool(pin); known && info.Loaded && !ok {
			all = append(all, fmt.Sprintf("pin: %s has no tool %s that hosts may see", server, wire.Quote(pin)))
		}
	}
	return all
}
