package aggregator

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"dynmcp/internal/wire"
)

// burst is how long changes are collected before hosts are told: servers that
// start together, or a server that announces each of its tools, are one
// change.
const burst = 50 * time.Millisecond

// digests stand for the bytes that a host would read, by list method.
type digests map[string][sha256.Size]byte

func (a *Aggregator) digest() digests {
	now := digests{}
	for _, which := range lists {
		now[which.method] = sum(a.listed(which.method))
	}
	return now
}

func sum(result json.RawMessage) [sha256.Size]byte { return sha256.Sum256(result) }

// announce tells hosts what changed, for as long as the aggregator runs. The
// last change always gets out: a token stays in the channel until it is seen.
func (a *Aggregator) announce() {
	timer := time.NewTimer(burst)
	defer timer.Stop()
	for {
		select {
		case <-a.changed:
		case <-a.ctx.Done():
			return
		}
		timer.Reset(burst)
		select {
		case <-timer.C:
		case <-a.ctx.Done():
			return
		}
		select {
		case <-a.changed:
		default:
		}
		now := a.digest()
		a.eachSession(func(s *session) { s.announce(now) })
	}
}

// announce tells the host of a session which of its lists are not what it read
// last.
func (s *session) announce(now digests) {
	s.mu.Lock()
	if !s.greeted && len(s.listens) == 0 {
		s.mu.Unlock()
		return
	}
	differs := func(method string) bool { return now[method] != s.seen[method] }
	tools, prompts := differs("tools/list"), differs("prompts/list")
	resources := differs("resources/list") || differs("resources/templates/list")
	s.seen = maps.Clone(now)
	s.mu.Unlock()
	if tools {
		s.tell("notifications/tools/list_changed", nil, func(l listen) bool { return l.tools })
	}
	if prompts {
		s.tell("notifications/prompts/list_changed", nil, func(l listen) bool { return l.prompts })
	}
	if resources {
		s.tell("notifications/resources/list_changed", nil, func(l listen) bool { return l.resources })
	}
}

// tell sends a notification to the host: as it is after a handshake, else on
// every stream that wants it.
func (s *session) tell(method string, params json.RawMessage, wants func(listen) bool) {
	s.mu.Lock()
	greeted := s.greeted
	var ids []json.RawMessage
	for _, l := range s.listens {
		if wants(l) {
			ids = append(ids, l.id)
		}
	}
	s.mu.Unlock()
	if greeted {
		s.peer.Notify(method, params)
		return
	}
	for _, id := range ids {
		s.peer.Notify(method, subscribed(params, id))
	}
}

// subscribed returns params with the id of the subscription they belong to.
func subscribed(params, id json.RawMessage) json.RawMessage {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	meta := wire.Get(params, "_meta")
	if meta == nil {
		meta = json.RawMessage(`{}`)
	}
	return wire.Set(params, "_meta", wire.Set(meta, metaSubscription, id))
}

// start notes what a host would read when it begins. What it has not read by then
// is no change to it.
func (s *session) start(now digests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = now
}

// read notes that a host was given a list.
func (s *session) read(method string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[method] = sum(result)
}

// tell passes a notification of an upstream on to the hosts of the handshake
// era; those of the stateless one get only what belongs to their requests.
func (a *Aggregator) tell(method string, params json.RawMessage) {
	a.eachSession(func(s *session) { s.tell(method, params, func(listen) bool { return false }) })
}

// updated passes on that a resource changed: to the sessions that subscribed
// to it, or to all where none did.
func (a *Aggregator) updated(params json.RawMessage) {
	uri, _ := wire.Text(wire.Get(params, "uri"))
	var mine, all []*session
	a.eachSession(func(s *session) {
		all = append(all, s)
		s.mu.Lock()
		defer s.mu.Unlock()
		wants := anyCovers(s.subscribed, uri)
		for _, l := range s.listens {
			wants = wants || anyCovers(l.uris, uri)
		}
		if wants {
			mine = append(mine, s)
		}
	})
	if len(mine) == 0 {
		mine = all
	}
	for _, s := range mine {
		s.tell("notifications/resources/updated", params, func(l listen) bool { return anyCovers(l.uris, uri) })
	}
}

// listed returns the result of a list method as a host reads it now.
func (a *Aggregator) listed(method string) json.RawMessage {
	view := a.catalog.View()
	switch method {
	case "tools/list":
		var tools []json.RawMessage
		for _, t := range a.state.Load().tools {
			tools = append(tools, t.definitions(view)...)
		}
		return result("tools", tools)
	case "prompts/list":
		return result("prompts", view.Prompts())
	case "resources/list":
		return result("resources", view.Resources())
	}
	return result("resourceTemplates", view.Templates())
}

// result returns {key: [entries…]}, every entry as it came.
func result(key string, entries []json.RawMessage) json.RawMessage {
	size := len(key) + 8
	for _, e := range entries {
		size += len(e) + 1
	}
	out := fmt.Appendf(make([]byte, 0, size), `{%q:[`, key)
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}
