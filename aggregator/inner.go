package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Some tools of ours take whole requests as their arguments: mcp_call any, proxy those
// that use what a server has. Such a request is a host.Request inside that of the call,
// and goes the way of every other one, through handle. What differs is how tools are
// named, and that the lists can start a server.

// innerParams are the params of a request inside another: its own, and those members of
// the outer one's that belong to the host's round trip. They are a copy.
func innerParams(own, outer json.RawMessage) json.RawMessage {
	if own == nil {
		own = json.RawMessage(`{}`)
	}
	params := append(json.RawMessage{}, own...)
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

// serveInner answers a request inside another, which came by a door.
func (s *session) serveInner(r *host.Request, by catalog.Door) {
	switch r.Method {
	case "tools/call":
		if c, ok := s.readCall(r, by); ok {
			s.callTool(r, c)
		}
	case "tools/list", "resources/list", "resources/templates/list", "prompts/list":
		s.listInside(r)
	case "resources/subscribe", "resources/unsubscribe":
		s.agg.work.AnswerWithin(r, func(ctx context.Context) { r.Reply(json.RawMessage(`{}`), s.subscribe(ctx, r)) })
	case "ping":
		r.Reply(json.RawMessage(`{}`), nil)
	case "initialize", "server/discover", "subscriptions/listen":
		r.Reply(nil, invalid("%s is between a host and dynmcp: no server is asked", r.Method))
	case "logging/setLevel":
		s.setLevelInside(r)
	default:
		s.handleInside(r)
	}
}

// setLevelInside sets the level of log messages for a host of the handshake era.
func (s *session) setLevelInside(r *host.Request) {
	if r.Era == transports.Stateless {
		r.Reply(nil, invalid("%s: a host of this version sets the level with each request", r.Method))
		return
	}
	r.Params = wire.Delete(r.Params, "_meta") // that of the call
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		_, err := s.setLevel(ctx, r, nil, func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, nil })
		r.Reply(json.RawMessage(`{}`), err)
	})
}

// handleInside hands on a request that is neither a call of a tool nor a list. The member
// "server" of its params names a server that may know a method which is not MCP's.
func (s *session) handleInside(r *host.Request) {
	named, ok := wire.Text(wire.Get(r.Params, "server"))
	server, known := s.view().ServerMeant(named)
	switch {
	case !ok || isMethod(r.Method):
		s.handle(r)
	case !known:
		r.Reply(nil, invalid("%s", s.unknownServer(s.view(), named)))
	default:
		r.Params = wire.Delete(r.Params, "server")
		s.passOn(r, server)
	}
}

// isMethod reports whether a method is one of those that handle knows.
func isMethod(method string) bool {
	area, _, _ := strings.Cut(method, "/")
	return slices.Contains([]string{"tools", "resources", "prompts", "completion", "tasks"}, area)
}

// listInside answers a list, which is an inquiry, from the catalogue. With the member
// "server" it is that server's.
func (s *session) listInside(r *host.Request) {
	name, ok := wire.Text(wire.Get(r.Params, "server"))
	if given := wire.Get(r.Params, "server"); given != nil && !ok {
		r.Reply(nil, invalid(`%s: "server" must be a string, not %s`, r.Method, wire.TypeName(given)))
		return
	}
	if cursor, ok := wire.Text(wire.Get(r.Params, "cursor")); ok && cursor != "" {
		r.Reply(nil, invalid("%s: unknown cursor %q", r.Method, cursor))
		return
	}
	if view := s.view(); name != "" {
		if name, ok = view.ServerMeant(name); !ok {
			given, _ := wire.Text(wire.Get(r.Params, "server"))
			r.Reply(nil, invalid("%s", s.unknownServer(view, given)))
			return
		}
	}
	inquiry{server: name, asText: true, answer: func() {
		s.agg.work.Answer(r, func() { r.Reply(s.view().ListInside(r.Method, name), nil) })
	}}.ask(s, r)
}

// failInner answers a call of a tool of ours with the error of the request in its
// arguments: an upstream's own as it is, any other as text for the model.
func failInner(r *host.Request, err error) {
	var rpc *wire.Error
	var failure *transports.Failure
	if !errors.As(err, &failure) && errors.As(err, &rpc) && rpc.Raw != nil {
		r.Reply(nil, rpc)
		return
	}
	r.Reply(errorResult(innerError(err)), nil)
}

// innerError puts the error of a request inside another in words for a model.
func innerError(err error) string {
	var rpc *wire.Error
	var failure *transports.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Text()
	case !errors.As(err, &rpc):
		return err.Error()
	}
	text := rpc.Message
	switch outcome, ok := wire.Text(wire.Get(rpc.Data, "outcome")); {
	case rpc.Raw != nil:
		text = fmt.Sprintf("the server answered with the error %d: %s", rpc.Code, rpc.Message)
	case outcome == string(transports.NotSent), rpc.Data == nil && rpc.Code == wire.CodeMethodNotFound:
		text += " (outcome not_sent: nothing was called)"
	case ok:
		text += fmt.Sprintf(" (outcome %s)", outcome)
	}
	if hint, ok := wire.Text(wire.Get(rpc.Data, "hint")); ok && rpc.Raw == nil {
		text += "\nhint: " + hint
	}
	return text
}
