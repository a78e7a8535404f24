package aggregator

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// requestTimeout bounds what we ask an upstream on our own account.
const requestTimeout = 30 * time.Second

// Notify implements transports.Peer.
func (p *peer) Notify(method string, params json.RawMessage) {
	switch method {
	case "notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed":
		p.listing.Invalidate(method)
	case "notifications/message":
		p.notifyHosts(method, params, func(c *forwardedCall) bool { return c.wantsLog(params) })
	case "notifications/resources/updated":
		p.resourceUpdated(params)
	case "notifications/tasks": // of the stateless era
		p.taskUpdated(params)
	case "notifications/tasks/status", "notifications/elicitation/complete": // the handshake era has them
		own, _ := wire.Text(wire.Get(params, "taskId"))
		if p.mayLearnTask(own) {
			params = bytes.Clone(params)
			p.agg.work.Go(func() {
				p.learnTask(p.agg.ctx, own)
				p.notifyHosts(method, params, func(*forwardedCall) bool { return false })
			})
			return
		}
		p.notifyHosts(method, params, func(*forwardedCall) bool { return false })
	default:
		p.notifyHosts(method, params, func(*forwardedCall) bool { return true })
	}
}

// isAboutUpstream reports whether a notification is about what the upstream has,
// and not about a call, whatever stream it came on.
func isAboutUpstream(method string) bool {
	return method == "notifications/resources/updated" || method == "notifications/elicitation/complete" || strings.HasPrefix(method, "notifications/tasks") || strings.HasSuffix(method, "/list_changed")
}

// notifyHosts passes a notification on: to hosts of the handshake era, and to one
// of the stateless era while a request of its is in flight here that wants it.
func (p *peer) notifyHosts(method string, params json.RawMessage, wants func(*forwardedCall) bool) {
	calls, verbose := p.calls.all(), p.source().Verbose()
	newest := map[*session]*forwardedCall{} // of a host of the handshake era, which waits there, and need not listen elsewhere
	for _, c := range calls {
		if c.session.shares && c.HostRequest().Era == transports.Handshake {
			newest[c.session] = c
		}
	}
	for _, s := range p.recipients(method, params, calls) {
		if method == "notifications/message" && !s.recipient.WantsLog(params, verbose) {
			continue
		}
		if c := newest[s]; c != nil {
			c.Tell(method, p.shown(s, method, params))
		} else {
			s.recipient.Notify(method, p.shown(s, method, params), func(notify.Stream) bool { return false })
		}
	}
	notified := map[*session]bool{}
	for _, c := range calls {
		if c.HostRequest().Era == transports.Stateless && !c.session.replica && !notified[c.session] && wants(c) {
			notified[c.session] = true
			c.Tell(method, p.shown(c.session, method, params))
		}
	}
}

// shown returns the params of a notification as a session's host is to see them.
func (p *peer) shown(s *session, method string, params json.RawMessage) json.RawMessage {
	params = p.shownRelation(s, params)
	switch method {
	case "notifications/message":
		return p.named(s, params)
	case "notifications/tasks", "notifications/tasks/status", "notifications/elicitation/complete":
		return p.shownID(s, params, "taskId")
	}
	return params
}

// named puts the upstream's name in front of a log message's logger, for sessions that
// see others too.
func (p *peer) named(s *session, params json.RawMessage) json.RawMessage {
	if s.single() != nil {
		return params
	}
	name := p.upstream.Server.Name
	if logger, ok := wire.Text(wire.Get(params, "logger")); ok {
		name += "/" + logger
	}
	return wire.Set(params, "logger", wire.Quote(name))
}
