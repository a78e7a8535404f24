package aggregator

import (
	"encoding/json"
	"fmt"

	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// handle takes a request of the data plane. It does not block: what has to
// wait goes on on a goroutine of its own.
func (a *Aggregator) handle(s *session, r *host.Request) {
	if r.Era == transports.Stateless {
		a.learn(s, wire.Get(r.Meta, transports.MetaCapabilities), true)
	}
	a.begin()
	switch r.Method {
	case "tools/call":
		a.callTool(s, r)
	case "resources/read":
		a.readResource(s, r)
	case "prompts/get":
		a.getPrompt(s, r)
	case "completion/complete":
		a.complete(s, r)
	default:
		a.unknownMethod(s, r)
	}
}

func (a *Aggregator) readResource(s *session, r *host.Request) {
	if uri, ok := onlyText(r, "uri"); ok {
		a.forwardTo(s, r, a.resource(uri, r.Era == transports.Stateless))
	}
}

func (a *Aggregator) getPrompt(s *session, r *host.Request) {
	if name, ok := onlyText(r, "name"); ok {
		a.forwardTo(s, r, a.prompt(name))
	}
}

// onlyText returns the member of a request's params by which it is routed. Where
// that is no text, or an upstream might read another one, the request is refused.
func onlyText(r *host.Request, member string) (string, bool) {
	raw, _, err := wire.StrictPair(r.Params, member, "_meta")
	text, ok := wire.Text(raw)
	switch {
	case err != nil:
		r.Reply(nil, invalid("%s: %v", r.Method, err))
	case !ok:
		r.Reply(nil, invalid("%s needs a string %q", r.Method, member))
	}
	return text, ok && err == nil
}

// complete asks the owner of what is to be completed.
func (a *Aggregator) complete(s *session, r *host.Request) {
	ref := wire.Get(r.Params, "ref")
	var to target
	switch kind, _ := wire.Text(wire.Get(ref, "type")); kind {
	case "ref/prompt":
		name, _ := wire.Text(wire.Get(ref, "name"))
		to = a.prompt(name)
	case "ref/resource":
		uri, _ := wire.Text(wire.Get(ref, "uri"))
		to = a.resource(uri, r.Era == transports.Stateless)
		to.guess = false // what a server suggests that does not have it is wrong
	default:
		r.Reply(nil, invalid("Unsupported completion ref type: %q", kind))
		return
	}
	to.capability = "completions"
	a.forwardTo(s, r, to)
}

// unknownMethod passes on what we do not know where there is no doubt whom it
// is for.
func (a *Aggregator) unknownMethod(s *session, r *host.Request) {
	if u := a.only(); u != nil {
		a.forward(s, r, u, r.Method, r.Params, false)
		return
	}
	r.Reply(nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", r.Method)})
}

// notice takes a notification of a host.
func (a *Aggregator) notice(s *session, method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		s.mu.Lock()
		s.greeted = true
		s.mu.Unlock()
		a.touch()
	case "notifications/cancelled":
		// The edge ends the request.
	case "notifications/progress":
		s.progressed(params)
	case "notifications/roots/list_changed":
		a.broadcast(method, params, "sendRootsListChanged")
	default:
		if a.only() != nil {
			a.broadcast(method, params, method)
		}
	}
}

// broadcast sends a notification to every upstream that is connected.
func (a *Aggregator) broadcast(method string, params json.RawMessage, what string) {
	for _, u := range a.set.All() {
		conn := u.Conn()
		if conn == nil || conn.Stateless() && method == "notifications/roots/list_changed" {
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

// stillThere reports whether an upstream is offered.
func stillThere(u *lazy.Upstream) bool { return u != nil && u.Status().State != lazy.Evicted }
