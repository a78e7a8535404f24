package aggregator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// The tools mcp_call and proxy take whole requests as their arguments. Such a request
// is a host.Request inside that of the call, and is handled like every other one. Only
// the names of tools differ, and a list can start a server.

// innerParams returns the params of a request inside another: a copy of its own, with those
// members of the outer params that belong to the host's round trip.
func innerParams(own, outer json.RawMessage) json.RawMessage {
	params := append(json.RawMessage{}, object(own)...)
	for _, name := range []string{"inputResponses", "requestState", "task"} {
		if value := wire.Get(outer, name); value != nil {
			params = wire.Set(params, name, value)
		}
	}
	meta, theirs := wire.Get(params, "_meta"), wire.Get(outer, "_meta")
	if !wire.IsObject(theirs) {
		return params
	}
	if !wire.IsObject(meta) {
		return wire.Set(params, "_meta", theirs)
	}
	for key, value := range wire.Members(theirs) {
		name, _ := wire.Text(key)
		meta = wire.Set(wire.Delete(meta, name), name, value)
	}
	return wire.Set(params, "_meta", meta)
}

// An innerRequest is a request in the arguments of a call of a tool of ours.
type innerRequest struct{ request }

// handleBy answers the request. by says how it calls tools.
func (in innerRequest) handleBy(by *surface.Target) {
	switch r := in.r; r.Method {
	case "tools/call":
		if c := in.toolCall(by); c != nil {
			c.send()
		}
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		in.list()
	case "resources/subscribe", "resources/unsubscribe":
		in.agg.work.AnswerWithin(r, func(ctx context.Context) {
			r.Reply(json.RawMessage(`{}`), (&controlRequest{request: in.request}).subscribe(ctx))
		})
	case "ping":
		r.Reply(json.RawMessage(`{}`), nil)
	case "initialize", "server/discover", "subscriptions/listen":
		r.Reply(nil, transports.InvalidParams("%s is between a host and dynmcp: no server is asked", r.Method))
	case "logging/setLevel":
		in.setLevel()
	default:
		in.pass()
	}
}

// setLevel sets the level of log messages for a host of the handshake era.
func (in innerRequest) setLevel() {
	r := in.r
	if r.Era == transports.Stateless {
		r.Reply(nil, transports.InvalidParams("%s: a host of this version sets the level with each request", r.Method))
		return
	}
	r.Params = wire.Delete(r.Params, "_meta") // it is the call's
	in.agg.work.AnswerWithin(r, func(ctx context.Context) {
		r.Reply(json.RawMessage(`{}`), (&controlRequest{request: in.request}).setLevel(ctx))
	})
}

// pass sends on a request that is neither a call of a tool nor a list. For a method that is
// not MCP's, the member "server" of its params names the server.
func (in innerRequest) pass() {
	r := in.r
	named, ok := wire.Text(wire.Get(r.Params, "server"))
	server, known := in.View().GuessServer(named)
	switch {
	case !ok || isMethod(r.Method):
		in.session.handle(r)
	case !known:
		r.Reply(nil, transports.InvalidParams("%s", surface.UnknownServer(in.session, named)))
	default:
		r.Params = wire.Delete(r.Params, "server")
		in.passOn(server)
	}
}

// isMethod reports whether handle knows a method.
func isMethod(method string) bool {
	area, _, _ := strings.Cut(method, "/")
	return slices.Contains([]string{"tools", "resources", "prompts", "completion", "tasks"}, area)
}

// list answers a list from the catalogue, of one server if the params have "server".
func (in innerRequest) list() {
	r := in.r
	given := wire.Get(r.Params, "server")
	named, ok := wire.Text(given)
	if given != nil && !ok {
		r.Reply(nil, transports.InvalidParams(`%s: "server" must be a string, not %s`, r.Method, wire.TypeName(given)))
		return
	}
	if cursor, ok := wire.Text(wire.Get(r.Params, "cursor")); ok && cursor != "" {
		r.Reply(nil, transports.InvalidParams("%s: unknown cursor %q", r.Method, cursor))
		return
	}
	server := ""
	if named != "" {
		if server, ok = in.View().GuessServer(named); !ok {
			r.Reply(nil, transports.InvalidParams("%s", surface.UnknownServer(in.session, named)))
			return
		}
	}
	// A failure is an error, never a result: the surface decides how the model reads either.
	in.answer(surface.Question{Server: server, Answer: func() {
		in.agg.work.Answer(r, func() { r.Reply(in.View().List(r.Method, server), nil) })
	}}, false)
}
