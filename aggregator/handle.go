package aggregator

import (
	"encoding/json"
	"fmt"
	"slices"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// handle takes a request of the data plane. It does not block: anything that may
// block moves to its own goroutine.
func (a *Aggregator) handle(s *session, r *host.Request) {
	a.learnFrom(s, r)
	a.begin(s)
	raised := a.raiseLevel(s, r)
	if raised == nil {
		a.serve(s, r)
		return
	}
	r.Own()
	a.spawnFor(r, func() {
		ctx, cancel := a.contextOf(r)
		defer cancel()
		select {
		case <-raised:
		case <-ctx.Done():
		}
		a.serve(s, r)
	})
}

// serve is the one switch on the method of a request of the data plane.
func (a *Aggregator) serve(s *session, r *host.Request) {
	if r.Era == transports.Stateless && a.resumeOffer(s, r) {
		return
	}
	switch r.Method {
	case "tools/call":
		a.callTool(s, r)
	case "resources/read":
		if uri, ok := routingMember(r, "uri"); ok {
			a.dispatchTo(s, r, a.resource(s, uri, r.Era))
		}
	case "prompts/get":
		if name, ok := routingMember(r, "name"); ok {
			a.dispatchTo(s, r, a.prompt(s, name))
		}
	case "completion/complete":
		a.complete(s, r)
	case "tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list":
		switch u := a.singleOf(s); {
		case u != nil:
			a.dispatch(s, r, route{upstream: u, params: r.Params})
		case r.Method == "tasks/list":
			a.listTasks(s, r)
		default:
			a.aboutTask(s, r)
		}
	default:
		// What we do not know is passed on if there is no doubt whom it is for.
		if u := a.singleOf(s); u != nil {
			a.dispatch(s, r, route{upstream: u, params: r.Params})
			return
		}
		r.Reply(nil, unknownMethod(r.Method))
	}
}

// callTool finds the tool that a host calls: one of ours, or one of the many that
// a surface shows.
func (a *Aggregator) callTool(s *session, r *host.Request) {
	p, err := readCall(r)
	if err != nil {
		r.Reply(nil, err)
		return
	}
	rawName := p.name.In(r.Params)
	if t := a.ownTool(s, rawName); t != nil {
		t.call(s, r, p)
		return
	}
	name, ok := wire.Text(rawName)
	if !ok {
		r.Reply(nil, invalid(`tools/call needs a string "name"`))
		return
	}
	a.retryWhenListed(s, r, func() bool { return a.callFound(s, r, name, p.task) }, func() {
		// If the tools of a wrapped server are shown as themselves, an unknown one
		// is that server's business, unless a filter decides which there are.
		if u := a.singleOf(s); u != nil && a.exposesTo(s, schema.ExposeDirect) && len(u.Server.ToolFilter) == 0 {
			a.dispatch(s, r, route{upstream: u, params: r.Params, task: p.task})
			return
		}
		if refusal := a.onlyTask(s, r.Era, name); refusal != nil {
			r.Reply(nil, refusal)
			return
		}
		r.Reply(nil, a.notShown(s, name))
	})
}

// ownTool returns the tool of ours of a name, raw JSON, nil if there is none.
func (a *Aggregator) ownTool(s *session, rawName json.RawMessage) *tool {
	tools := a.toolsOf(s)
	if i := slices.IndexFunc(tools, func(t tool) bool { return t.name != "" && wire.EqualString(rawName, t.name) }); i >= 0 {
		return &tools[i]
	}
	if name, ok := wire.Text(rawName); ok && len(a.config().Pin) > 0 {
		if i := slices.IndexFunc(tools, func(t tool) bool { return catalog.IsShort(name, t.name) }); i >= 0 {
			return &tools[i]
		}
	}
	return nil
}

// notShown is the error for a tool that no surface shows. If a tool of ours can call
// it, the error says how.
func (a *Aggregator) notShown(s *session, name string) *wire.Error {
	view := a.viewsOf(s)[catalog.NoTasks]
	t := meant(view, name)
	if t == nil {
		t, _ = view.OfLeaf(name)
	}
	if t != nil && a.exposesTo(s, schema.ExposeDiscover) {
		return invalid("Unknown tool: %s. Call it through %s: {\"tool_name\": %s, \"tool_input\": {…}}", name, t.Door, wire.Quote(t.Name))
	}
	if t != nil && a.exposesTo(s, schema.ExposeBrowser) {
		return invalid("Unknown tool: %s. Call it through mcp_call: {\"method\": \"tools/call\", \"params\": {\"name\": %s, \"arguments\": {…}}}", name, wire.Quote(t.Name))
	}
	if t != nil && a.exposesTo(s, schema.ExposeProxy) {
		return invalid("Unknown tool: %s. Call it through proxy: {\"action\": \"call\", \"type\": \"tool\", \"path\": %s, \"args\": {…}}", name, wire.Quote(t.Name))
	}
	if info, ok := view.Server(view.ServerOf(name)); ok && info.Down != "" {
		return invalid("Unknown tool: %s. Its server %s could not be started: %s", name, info.Called, info.Down)
	}
	return invalid("Unknown tool: %s", name)
}

// callFound calls the upstream's tool that a surface shows under a name. Its
// params are the host's but for that name.
func (a *Aggregator) callFound(s *session, r *host.Request, name string, task bool) bool {
	view := a.viewOf(s)
	for _, t := range a.toolsOf(s) {
		if t.find == nil {
			continue
		}
		if found, ok := t.find(view, name); ok {
			params := r.Params
			if found.Upstream != name {
				params = wire.Set(params, "name", wire.Quote(found.Upstream))
			}
			a.callUpstream(s, r, found, route{params: params, task: task})
			return true
		}
	}
	return false
}

// callUpstream calls a tool by a route that lacks its upstream.
func (a *Aggregator) callUpstream(s *session, r *host.Request, t *catalog.Tool, to route) {
	u := a.set.Get(t.Server)
	if !isOffered(u) {
		r.Reply(errorResult(a.unknownServer(s, a.catalog.View(), t.Server)), nil)
		return
	}
	if to.asText && t.OnlyTask && r.Era == transports.Handshake && wire.Get(to.params, "task") == nil {
		r.Reply(errorResult(fmt.Sprintf("%s runs only as a task (MCP tasks), which a call of use_tool is not: call it by its own name, %s.", t.Name, t.Direct)), nil)
		return
	}
	to.upstream, to.tool = u, t
	a.dispatch(s, r, to)
}

// callParams are the params of a tools/call, and where two members of theirs are.
type callParams struct {
	all             json.RawMessage
	name, arguments wire.Span
	task            bool // they ask for a task
}

// readCall reads the params of a tools/call.
func readCall(r *host.Request) (p callParams, err error) {
	p.all = r.Params
	if p.name, p.arguments, err = r.Outline.FindStrict(r.Params, "name", "arguments"); err != nil {
		return p, invalid("tools/call: %v", err)
	}
	p.task = r.Outline.Get(r.Params, "task") != nil
	return p, nil
}

// with returns the params with another name and other arguments, which may be
// nil; every other byte stays. If the arguments lie in those of before they stay where
// they are, and p is used up.
func (p callParams) with(name string, arguments json.RawMessage) json.RawMessage {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	if params := p.inPlace(name, arguments); params != nil {
		return params
	}
	rename := wire.Edit{Span: p.name, With: wire.Quote(name)}
	if p.arguments.Len == 0 {
		return wire.Set(wire.Replace(p.all, rename), "arguments", arguments)
	}
	return wire.Replace(p.all, rename, wire.Edit{Span: p.arguments, With: arguments})
}

// inPlace is with for arguments that lie in those of before: what is around them is
// written next to them. It returns nil where there is no room for that, or too much
// would move.
func (p callParams) inPlace(name string, arguments json.RawMessage) json.RawMessage {
	const farthest = 4 << 10
	at := wire.Locate(p.arguments.In(p.all), arguments)
	if at.Len == 0 || p.name.Off > p.arguments.Off {
		return nil
	}
	at.Off += p.arguments.Off
	var space [128]byte
	quoted := wire.AppendQuote(space[:0], name)
	before, between, behind := p.all[:p.name.Off], p.all[p.name.Off+p.name.Len:p.arguments.Off], p.all[p.arguments.Off+p.arguments.Len:]
	start := at.Off - len(between) - len(quoted) - len(before)
	if start < 0 || len(before)+len(between)+len(behind) > farthest {
		return nil
	}
	copy(p.all[at.Off-len(between):], between)
	copy(p.all[start+len(before):], quoted)
	copy(p.all[start:], before)
	copy(p.all[at.Off+at.Len:], behind)
	return p.all[start : at.Off+at.Len+len(behind)]
}

// routingMember returns the member of a request's params by which it is routed. If
// that is no string, or an upstream might read another one, the request is refused.
func routingMember(r *host.Request, member string) (string, bool) {
	raw, _, err := wire.GetStrict(r.Params, member, "_meta")
	text, ok := wire.Text(raw)
	switch {
	case err != nil:
		r.Reply(nil, invalid("%s: %v", r.Method, err))
	case !ok:
		r.Reply(nil, invalid("%s needs a string %q", r.Method, member))
	}
	return text, ok && err == nil
}

// complete asks the owner of what is to be completed. As with routingMember an
// upstream must not be able to read another reference than we do.
func (a *Aggregator) complete(s *session, r *host.Request) {
	ref, _, err := wire.GetStrict(r.Params, "ref", "_meta")
	kind, _ := wire.Text(wire.Get(ref, "type"))
	member := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	var raw json.RawMessage
	if err == nil && member != "" {
		_, raw, err = wire.GetStrict(ref, "type", member)
	}
	name, _ := wire.Text(raw)
	var to target
	switch {
	case err != nil:
		r.Reply(nil, invalid("%s: %v", r.Method, err))
		return
	case member == "name":
		to = a.prompt(s, name)
	case member == "uri":
		to = a.resource(s, name, r.Era)
		to.guess = false // what a server suggests that does not have it is wrong
	default:
		r.Reply(nil, invalid("Unsupported completion ref type: %q", kind))
		return
	}
	to.capability = "completions"
	a.dispatchTo(s, r, to)
}

// handleNotification takes a notification of a host.
func (a *Aggregator) handleNotification(s *session, method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		s.mu.Lock()
		s.initialized = true
		s.mu.Unlock()
		a.sessions.markDirty()
	case "notifications/cancelled":
		// The edge ends a request that has no answer. One that was answered with a
		// question may be meant as well.
		a.parked.cancel(s, wire.Get(params, "requestId"), wire.Get(params, "reason"))
	case "notifications/progress":
		s.passProgress(params)
	case "notifications/roots/list_changed":
		a.broadcast(s, method, params, "sendRootsListChanged")
	default:
		if a.singleOf(s) != nil {
			a.broadcast(s, method, params, method)
		}
	}
}

// broadcast sends a notification of a session to every upstream of its that is connected.
func (a *Aggregator) broadcast(s *session, method string, params json.RawMessage, what string) {
	for _, u := range a.upstreamsOf(s) {
		conn := u.Conn()
		if conn == nil || conn.Era() == transports.Stateless && method == "notifications/roots/list_changed" {
			continue // that era has no roots of a session
		}
		if err := conn.Notify(method, params); err != nil {
			a.log.Warn(what+" failed", "upstream", u.Server.Name, "err", err)
		}
	}
}

func invalid(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// isOffered reports whether there is an upstream and it was not evicted.
func isOffered(u *lazy.Upstream) bool { return u != nil && u.Status().State != lazy.Evicted }
