package fleet

import (
	"context"
	"encoding/json"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Subscriber begins or ends a subscription at an upstream.
type Subscriber func(conn *upstream.Conn, ctx context.Context, params json.RawMessage) error

// IsSubscribed reports whether a host of the upstream is subscribed to a resource.
func (p *Endpoint) IsSubscribed(uri string) bool {
	if p.Upstream.Owner == "" {
		return p.fleet.Sessions.IsSubscribed(p.Upstream.Server.Name, uri)
	}
	_, ok := p.Source().Subscriptions()[uri]
	return ok
}

// resourceUpdated forwards that a resource changed: to the sessions that are subscribed to it, or to
// a resource that contains it, and to no others.
func (p *Endpoint) resourceUpdated(params json.RawMessage) {
	uri, _ := wire.Text(wire.Get(params, "uri"))
	for _, s := range p.Source().Subscribers(uri) {
		s.Recipient.Notify("notifications/resources/updated", params, func(st notify.Stream) bool { return st.Covers(uri) })
	}
}

// DropSubscriptions ends the subscriptions of a session to uris that no other host has, if the
// upstream is connected.
func (f *Fleet) DropSubscriptions(s *sessions.Session, uris map[string]bool) {
	for uri := range uris {
		u := f.ExistingFor(s, f.ResourceOwner(s, uri))
		if u == nil || u.Conn() == nil || f.Of(u).IsSubscribed(uri) {
			continue
		}
		f.Of(u).subscribeLater(u.Conn(), AboutURI(uri), (*upstream.Conn).Unsubscribe)
	}
}

// renewSubscriptions sends a new connection the subscriptions of the previous one.
func (p *Endpoint) renewSubscriptions(conn *upstream.Conn) {
	f := p.fleet
	for uri, s := range p.Source().Subscriptions() {
		if f.ExistingFor(s, f.ResourceOwner(s, uri)) == p.Upstream {
			p.subscribeLater(conn, AboutURI(uri), (*upstream.Conn).Subscribe)
		}
	}
	p.renewTasks(conn)
}

// subscribeLater subscribes or unsubscribes in the background.
func (p *Endpoint) subscribeLater(conn *upstream.Conn, params json.RawMessage, do Subscriber) {
	p.fleet.Work.Go(func() {
		ctx, cancel := context.WithTimeout(p.fleet.Context, RequestTimeout)
		defer cancel()
		if err := do(conn, ctx, params); err != nil && p.fleet.Context.Err() == nil {
			p.fleet.Log.Warn("subscription not changed", "upstream", conn.Name(), "of", string(params), "err", err)
		}
	})
}

// AboutURI returns the params of a request about a resource.
func AboutURI(uri string) json.RawMessage {
	return append(append([]byte(`{"uri":`), wire.Quote(uri)...), '}')
}
