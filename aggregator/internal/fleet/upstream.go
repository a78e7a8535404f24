package fleet

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// RequestTimeout limits dynmcp's own requests to an upstream.
const RequestTimeout = 30 * time.Second

// Notify implements transports.Peer.
func (p *Endpoint) Notify(method string, params json.RawMessage) {
	if notify.IsMisdirected(method) {
		p.countDropped(method)
		return
	}
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		if p.Upstream.Conn() == nil { // it was introduced a moment ago
			p.fleet.Lists.noteRegard(p)
		}
		p.Listing.Invalidate(method)
	case "notifications/message":
		p.notifyHosts(method, params, func(c *call.Flight) bool { return c.WantsLog(params) })
	case "notifications/resources/updated":
		p.resourceUpdated(params)
	case "notifications/tasks": // of the stateless era
		p.taskUpdated(params)
	case "notifications/tasks/status", "notifications/elicitation/complete": // of the handshake era
		own, _ := wire.Text(wire.Get(params, "taskId"))
		if p.MayLearnTask(own) {
			params = bytes.Clone(params)
			p.fleet.Work.Go(func() {
				_ = p.LearnTask(p.fleet.Context, own) // is logged
				p.notifyHosts(method, params, func(*call.Flight) bool { return false })
			})
			return
		}
		p.notifyHosts(method, params, func(*call.Flight) bool { return false })
	default:
		p.notifyHosts(method, params, func(*call.Flight) bool { return true })
	}
}

// NotifyIn forwards a message on the own stream of a call.
func (p *Endpoint) NotifyIn(c *call.Flight, method string, params json.RawMessage) {
	if isAboutUpstream(method) || notify.IsMisdirected(method) {
		p.Notify(method, params)
		return
	}
	params = p.ToHostRelation(c.Session, params)
	switch {
	case method != "notifications/message":
	case c.HostRequest().Era == transports.Stateless && !c.WantsLog(params) || !c.Session.Recipient.WantsLog(params, p.Source().Verbose()):
		return
	default:
		params = p.named(c.Session, params)
	}
	if p.Accepts(c.Session, method, params) {
		c.NotifyHost(method, params)
	}
}

// Accepts reports whether a session's host is sent a notification, and counts it as dropped if
// the server has sent too many.
func (p *Endpoint) Accepts(s *sessions.Session, method string, params json.RawMessage) bool {
	ok := s.Recipient.Accepts(p.Upstream.Server.Name, method, len(params))
	if !ok {
		p.countDropped(method)
	}
	return ok
}

// countDropped counts a dropped notification. The 1st, 10th, 100th and so on are logged.
func (p *Endpoint) countDropped(method string) {
	p.fleet.Observation.Dropped(event.Session{Server: p.Upstream.Server.Name})
	n := p.dropped.Add(1)
	for ; n%10 == 0; n /= 10 {
	}
	if n == 1 {
		p.fleet.Log.Warn("notifications of the server are dropped", "upstream", p.Upstream.Server.Name, "method", method, "count", p.dropped.Load())
	}
}

// isAboutUpstream reports whether a notification is about the upstream, and not about a call, on
// whatever stream it came.
func isAboutUpstream(method string) bool {
	return method == "notifications/resources/updated" || method == "notifications/elicitation/complete" || strings.HasPrefix(method, "notifications/tasks") || strings.HasSuffix(method, "/list_changed")
}

// notifyHosts forwards a notification to hosts of the handshake era, and to a host of the stateless
// era while one of its requests that wants it is in flight here.
func (p *Endpoint) notifyHosts(method string, params json.RawMessage, wants func(*call.Flight) bool) {
	calls, verbose := p.Calls.All(), p.Source().Verbose()
	newest := map[*sessions.Session]*call.Flight{} // of a host of the handshake era, which reads it there
	for _, c := range calls {
		if c.Session.Shared && c.HostRequest().Era == transports.Handshake {
			newest[c.Session] = c
		}
	}
	for _, s := range p.recipients(method, params, calls) {
		if method == "notifications/message" && !s.Recipient.WantsLog(params, verbose) {
			continue
		}
		if !p.Accepts(s, method, params) {
			continue
		}
		if c := newest[s]; c != nil {
			c.NotifyHost(method, p.shown(s, method, params))
		} else {
			s.Recipient.Notify(method, p.shown(s, method, params), func(notify.Stream) bool { return false })
		}
	}
	notified := map[*sessions.Session]bool{}
	for _, c := range calls {
		if c.HostRequest().Era == transports.Stateless && !c.Session.Replica && !notified[c.Session] && wants(c) {
			if notified[c.Session] = true; p.Accepts(c.Session, method, params) {
				c.NotifyHost(method, p.shown(c.Session, method, params))
			}
		}
	}
}

// shown returns the params of a notification for a session's host.
func (p *Endpoint) shown(s *sessions.Session, method string, params json.RawMessage) json.RawMessage {
	params = p.ToHostRelation(s, params)
	switch method {
	case "notifications/message":
		return p.named(s, params)
	case "notifications/tasks", "notifications/tasks/status", "notifications/elicitation/complete":
		return p.ToHostID(s, params, "taskId")
	}
	return params
}

// named prefixes a log message's logger with the upstream's name, for sessions that see other
// upstreams too.
func (p *Endpoint) named(s *sessions.Session, params json.RawMessage) json.RawMessage {
	if s.IsSingleServer() {
		return params
	}
	name := p.Upstream.Server.Name
	if logger, ok := wire.Text(wire.Get(params, "logger")); ok {
		name += "/" + logger
	}
	return wire.Set(params, "logger", wire.Quote(name))
}
