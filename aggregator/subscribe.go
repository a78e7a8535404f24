package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A subscriber begins or ends a subscription at an upstream.
type subscriber func(conn *upstream.Conn, ctx context.Context, params json.RawMessage) error

// subscribe passes a subscription on to the owner of the resource, or the end of one
// when no host wants it any more.
func (s *session) subscribe(ctx context.Context, r *host.Request) error {
	uri, ok := wire.Text(wire.Get(r.Params, "uri"))
	if !ok {
		return invalid("%s needs a string \"uri\"", r.Method)
	}
	if r.Method == "resources/unsubscribe" {
		s.recipient.SetSubscribed(uri, false)
		if s.agg.isSubscribed(s.existingFor(s.resourceOwner(uri)), uri) {
			return nil
		}
		return s.subscribeTo(ctx, uri, r.Params, (*upstream.Conn).Unsubscribe)
	}
	added := s.recipient.SetSubscribed(uri, true) // before the upstream is: an update may follow its answer
	err := s.subscribeTo(ctx, uri, r.Params, (*upstream.Conn).Subscribe)
	if err != nil && added {
		s.recipient.SetSubscribed(uri, false)
	}
	return err
}

// subscribeTo has a resource's owner do something about a subscription, or else
// the first upstream that does not refuse to. It waits for those that are starting.
func (s *session) subscribeTo(ctx context.Context, uri string, params json.RawMessage, do subscriber) error {
	to := s.resource(uri, transports.Handshake)
	if to.owner() == nil {
		if err := s.awaitListings(ctx); err != nil {
			return err
		}
	}
	if u := to.owner(); u != nil {
		return s.subscribeAt(ctx, u, uri, params, do)
	}
	for _, u := range s.candidates(to) {
		err := s.subscribeAt(ctx, u, uri, params, do)
		if err == nil || u == s.single() {
			return err
		}
	}
	return s.notFound(to)
}

func (s *session) subscribeAt(ctx context.Context, u *lazy.Upstream, uri string, params json.RawMessage, do subscriber) error {
	u, err := s.upstreamFor(u)
	if err != nil {
		return err
	}
	conn, release, err := u.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := do(conn, ctx, params); err != nil {
		return err
	}
	s.agg.peerOf(u).seenURIs.add(uri) // so that the end of the subscription goes there too
	return nil
}

// isSubscribed reports whether a host of an upstream, nil for any, is subscribed to a
// resource.
func (a *Aggregator) isSubscribed(u *lazy.Upstream, uri string) bool {
	switch {
	case u == nil:
		return a.sessions.IsSubscribed("", uri)
	case u.Owner == "":
		return a.sessions.IsSubscribed(u.Server.Name, uri)
	}
	_, ok := a.peerOf(u).source().Subscriptions()[uri]
	return ok
}

// resourceUpdated passes on that a resource changed: to the sessions that are
// subscribed to it, or to one that it is a part of, and to no others.
func (p *peer) resourceUpdated(params json.RawMessage) {
	uri, _ := wire.Text(wire.Get(params, "uri"))
	for _, s := range p.source().Subscribers(uri) {
		s.recipient.Notify("notifications/resources/updated", params, func(st notify.Stream) bool { return st.Covers(uri) })
	}
}

// dropSubscriptions ends those of a session to uris that no host wants any more, where
// the upstream is connected.
func (s *session) dropSubscriptions(uris map[string]bool) {
	for uri := range uris {
		u := s.existingFor(s.resourceOwner(uri))
		if u == nil || u.Conn() == nil || s.agg.isSubscribed(u, uri) {
			continue
		}
		s.agg.subscribeLater(u.Conn(), aboutURI(uri), (*upstream.Conn).Unsubscribe)
	}
}

// renewSubscriptions tells a new connection what hosts subscribed to over the
// last one.
func (a *Aggregator) renewSubscriptions(u *lazy.Upstream, conn *upstream.Conn) {
	for uri, s := range a.peerOf(u).source().Subscriptions() {
		if s.existingFor(s.resourceOwner(uri)) == u {
			a.subscribeLater(conn, aboutURI(uri), (*upstream.Conn).Subscribe)
		}
	}
	a.renewTasks(u, conn)
}

// subscribeLater runs in the background.
func (a *Aggregator) subscribeLater(conn *upstream.Conn, params json.RawMessage, do subscriber) {
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
		defer cancel()
		if err := do(conn, ctx, params); err != nil && a.ctx.Err() == nil {
			a.log.Warn("subscription not changed", "upstream", conn.Name(), "of", string(params), "err", err)
		}
	})
}

func aboutURI(uri string) json.RawMessage {
	return append(append([]byte(`{"uri":`), wire.Quote(uri)...), '}')
}

// listen keeps a stream of notifications for a host of the stateless era until
// the host cancels it (MCP 2026-07-28, "Subscriptions").
func (s *session) listen(ctx context.Context, r *host.Request, req mcp.Request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return nil, invalid(`subscriptions/listen needs "notifications"`)
	}
	want := params.Notifications
	taskIDs := wire.Get(r.Params, "notifications", "taskIds") // which the SDK does not know
	if taskIDs != nil && s.declaration().tasks != catalog.StatelessTasks {
		return nil, missingTasks()
	}
	id := r.ID
	l := notify.Stream{ID: id, URIs: map[string]bool{}, Changes: map[string]bool{
		"notifications/tools/list_changed":     want.ToolsListChanged,
		"notifications/prompts/list_changed":   want.PromptsListChanged,
		"notifications/resources/list_changed": want.ResourcesListChanged,
	}}
	var granted []string
	for _, uri := range want.ResourceSubscriptions {
		if err := s.subscribeTo(ctx, uri, aboutURI(uri), (*upstream.Conn).Subscribe); err != nil {
			s.agg.log.Warn("resource not subscribed", "uri", uri, "err", err)
			continue
		}
		l.URIs[uri] = true
		granted = append(granted, uri)
	}
	l.Tasks = s.subscribeToTasks(ctx, taskIDs)
	s.recipient.AddStream(l)
	if !s.incomplete() { // what changes once this is acknowledged is a change
		now := s.snapshot()
		s.recipient.CountFrom(now, s.followedTasks(), s.reading(now, true))
	}
	defer func() {
		s.recipient.RemoveStream(l)
		s.dropSubscriptions(l.URIs)
		s.dropTasks(l.Tasks)
	}()
	want.ResourceSubscriptions = granted
	agreed, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	if taskIDs != nil {
		agreed = wire.Set(agreed, "taskIds", quoted(slices.Sorted(maps.Keys(l.Tasks))))
	}
	s.host.Notify("notifications/subscriptions/acknowledged", transports.SetMeta(fmt.Appendf(nil, `{"notifications":%s}`, agreed), transports.MetaSubscriptionID, id))
	s.agg.changed.Set()
	select {
	case <-ctx.Done():
	case <-s.agg.ctx.Done():
	}
	return &rawResult{raw: transports.SetMeta(nil, transports.MetaSubscriptionID, id)}, nil
}
