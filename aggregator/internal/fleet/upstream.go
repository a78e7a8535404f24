package fleet

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// RequestTimeout bounds what we ask an upstream on our own account.
const RequestTimeout = 30 * time.Second

// Notify implements transports.Peer.
func (p *Peer) Notify(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		p.Listing.Invalidate(method)
	case "notifications/message":
		p.notifyHosts(method, params, func(c *call.Flight) bool { return c.WantsLog(params) })
	case "notifications/resources/updated":
		p.resourceUpdated(params)
	case "notifications/tasks": // of the stateless era
		p.taskUpdated(params)
	case "notifications/tasks/status", "notifications/elicitation/complete": // the handshake era has them
		own, _ := wire.Text(wire.Get(params, "taskId"))
		if p.MayLearnTask(own) {
			params = bytes.Clone(params)
			p.fleet.Work.Go(func() {
				p.LearnTask(p.fleet.Context, own)
				p.notifyHosts(method, params, func(*call.Flight) bool { return false })
			})
			return
		}
		p.notifyHosts(method, params, func(*call.Flight) bool { return false })
	default:
		p.notifyHosts(method, params, func(*call.Flight) bool { return true })
	}
}

// NotifyIn passes on what came on the own stream of a call.
func (p *Peer) NotifyIn(c *call.Flight, method string, params json.RawMessage) {
	if isAboutUpstream(method) {
		p.Notify(method, params)
		return
	}
	params = p.ShownRelation(c.Session, params)
	switch {
	case method != "notifications/message":
	case c.HostRequest().Era == transports.Stateless && !c.WantsLog(params) || !c.Session.Recipient.WantsLog(params, p.Source().Verbose()):
		return
	default:
		params = p.named(c.Session, params)
	}
	c.Tell(method, params)
}

// isAboutUpstream reports whether a notification is about what the upstream has,
// and not about a call, whatever stream it came on.
func isAboutUpstream(method string) bool {
	return method == "notifications/resources/updated" || method == "notifications/elicitation/complete" || strings.HasPrefix(method, "notifications/tasks") || strings.HasSuffix(method, "/list_changed")
}

// notifyHosts passes a notification on: to hosts of the handshake era, and to one
// of the stateless era while a request of its is in flight here that wants it.
func (p *Peer) notifyHosts(method string, params json.RawMessage, wants func(*call.Flight) bool) {
	calls, verbose := p.Calls.All(), p.Source().Verbose()
	newest := map[*sessions.Session]*call.Flight{} // of a host of the handshake era, which waits there, and need not listen elsewhere
	for _, c := range calls {
		if c.Session.Shares && c.HostRequest().Era == transports.Handshake {
			newest[c.Session] = c
		}
	}
	for _, s := range p.recipients(method, params, calls) {
		if method == "notifications/message" && !s.Recipient.WantsLog(params, verbose) {
			continue
		}
		if c := newest[s]; c != nil {
			c.Tell(method, p.shown(s, method, params))
		} else {
			s.Recipient.Notify(method, p.shown(s, method, params), func(notify.Stream) bool { return false })
		}
	}
	notified := map[*sessions.Session]bool{}
	for _, c := range calls {
		if c.HostRequest().Era == transports.Stateless && !c.Session.Replica && !notified[c.Session] && wants(c) {
			notified[c.Session] = true
			c.Tell(method, p.shown(c.Session, method, params))
		}
	}
}

// shown returns the params of a notification as a session's host is to see them.
func (p *Peer) shown(s *sessions.Session, method string, params json.RawMessage) json.RawMessage {
	params = p.ShownRelation(s, params)
	switch method {
	case "notifications/message":
		return p.named(s, params)
	case "notifications/tasks", "notifications/tasks/status", "notifications/elicitation/complete":
		return p.ShownID(s, params, "taskId")
	}
	return params
}

// named puts the upstream's name in front of a log message's logger, for sessions that
// see others too.
func (p *Peer) named(s *sessions.Session, params json.RawMessage) json.RawMessage {
	if s.IsAlone() {
		return params
	}
	name := p.Upstream.Server.Name
	if logger, ok := wire.Text(wire.Get(params, "logger")); ok {
		name += "/" + logger
	}
	return wire.Set(params, "logger", wire.Quote(name))
}
