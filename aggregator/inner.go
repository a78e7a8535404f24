package aggregator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/surface"
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

// handleInner answers a request in the arguments of a call of a tool of ours. by says how it calls
// tools.
func (q request) handleInner(by *surface.Target) {
	switch r := q.r; r.Method {
	case "tools/call":
		if c := q.toolCall(by); c != nil {
			c.send()
		}
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		q.listInner()
	case "resources/subscribe", "resources/unsubscribe":
		q.replyWith(q.subscribe)
	case "ping":
		r.Reply(json.RawMessage(`{}`), nil)
	case "initialize", "server/discover", "subscriptions/listen":
		r.Reply(nil, transports.InvalidParams("%s is between a host and dynmcp: no server is asked", r.Method))
	case "logging/setLevel":
		if r.Era == transports.Stateless {
			r.Reply(nil, transports.InvalidParams("%s: a host of this version sets the level with each request", r.Method))
			return
		}
		r.Params = wire.Delete(r.Params, "_meta") // it is the call's
		q.replyWith(q.setLevel)
	default:
		q.passInner()
	}
}

// replyWith answers the request with what do returns on a goroutine.
func (q request) replyWith(do func(context.Context) error) {
	q.agg.work.AnswerWithin(q.r, func(ctx context.Context) { q.r.Reply(json.RawMessage(`{}`), do(ctx)) })
}

// handleOfLong is handleInner for a request that a longCall makes, or handle if by is nil.
func (q request) handleOfLong(by *surface.Target) {
	if by == nil {
		q.handle(q.r)
		return
	}
	if q.r.Era == transports.Stateless && q.resumes(func() { q.handleOfLong(by) }) {
		return
	}
	if c := q.toolCall(by); c != nil {
		c.send()
	}
}

// passInner sends on a request that is neither a call of a tool nor a list. For a method that is
// not MCP's, the member "server" of its params names the server.
func (q request) passInner() {
	r := q.r
	named, ok := wire.Text(wire.Get(r.Params, "server"))
	server, known := q.View().GuessServer(named)
	switch {
	case !ok || isMethod(r.Method):
		q.session.handle(r)
	case !known:
		r.Reply(nil, transports.InvalidParams("%s", surface.UnknownServer(q.session, named)))
	default:
		r.Params = wire.Delete(r.Params, "server")
		q.passOn(server)
	}
}

// isMethod reports whether handle knows a method.
func isMethod(method string) bool {
	area, _, _ := strings.Cut(method, "/")
	return slices.Contains([]string{"tools", "resources", "prompts", "completion", "tasks"}, area)
}

// listInner answers a list from the catalogue, of one server if the params have "server".
func (q request) listInner() {
	r := q.r
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
		if server, ok = q.View().GuessServer(named); !ok {
			r.Reply(nil, transports.InvalidParams("%s", surface.UnknownServer(q.session, named)))
			return
		}
	}
	// A failure is an error, never a result: the surface decides how the model reads either.
	q.answer(surface.Question{Server: server, Answer: func() {
		q.agg.work.Answer(r, func() { r.Reply(q.View().List(r.Method, server), nil) })
	}}, false)
}
