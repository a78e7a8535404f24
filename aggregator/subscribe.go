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
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A subscriber begins or ends a subscription at an upstream.
type subscriber func(conn *upstream.Conn, ctx context.Context, params json.RawMessage) error

// subscribe passes a subscription on to the owner of the resource, or the end of one
// when no host wants it any more.
func (q *controlRequest) subscribe(ctx context.Context) error {
	uri, ok := wire.Text(wire.Get(q.r.Params, "uri"))
	if !ok {
		return invalid("%s needs a string \"uri\"", q.r.Method)
	}
	if q.r.Method == "resources/unsubscribe" {
		q.recipient.SetSubscribed(uri, false)
		u := q.existingFor(q.resourceOwner(uri))
		if u == nil && q.agg.sessions.IsSubscribed("", uri) || u != nil && q.agg.peerOf(u).isSubscribed(uri) {
			return nil
		}
		return q.subscribeTo(ctx, uri, q.r.Params, (*upstream.Conn).Unsubscribe)
	}
	added := q.recipient.SetSubscribed(uri, true) // before the upstream is: an update may follow its answer
	err := q.subscribeTo(ctx, uri, q.r.Params, (*upstream.Conn).Subscribe)
	if err != nil && added {
		q.recipient.SetSubscribed(uri, false)
	}
	return err
}

// subscribeTo has a resource's owner do something about a subscription, or else
// the first upstream that does not refuse to. It waits for those that are starting.
func (q *controlRequest) subscribeTo(ctx context.Context, uri string, params json.RawMessage, do subscriber) error {
	to := q.resource(uri, transports.Handshake)
	if to.owner() == nil {
		if err := q.awaitListings(ctx); err != nil {
			return err
		}
	}
	if u := to.owner(); u != nil {
		return q.subscribeAt(ctx, u, uri, params, do)
	}
	for _, u := range q.candidates(to) {
		err := q.subscribeAt(ctx, u, uri, params, do)
		if err == nil || u == q.single() {
			return err
		}
	}
	return q.notFound(to)
}

func (q *controlRequest) subscribeAt(ctx context.Context, u *lazy.Upstream, uri string, params json.RawMessage, do subscriber) error {
	u, err := q.upstreamFor(u)
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
	q.agg.peerOf(u).seenURIs.add(uri) // so that the end of the subscription goes there too
	return nil
}

// isSubscribed reports whether a host of the upstream is subscribed to a resource.
func (p *peer) isSubscribed(uri string) bool {
	if p.upstream.Owner == "" {
		return p.agg.sessions.IsSubscribed(p.upstream.Server.Name, uri)
	}
	_, ok := p.source().Subscriptions()[uri]
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
		if u == nil || u.Conn() == nil || s.agg.peerOf(u).isSubscribed(uri) {
			continue
		}
		s.agg.peerOf(u).subscribeLater(u.Conn(), aboutURI(uri), (*upstream.Conn).Unsubscribe)
	}
}

// renewSubscriptions tells a new connection what hosts subscribed to over the last one.
func (p *peer) renewSubscriptions(conn *upstream.Conn) {
	for uri, s := range p.source().Subscriptions() {
		if s.existingFor(s.resourceOwner(uri)) == p.upstream {
			p.subscribeLater(conn, aboutURI(uri), (*upstream.Conn).Subscribe)
		}
	}
	p.renewTasks(conn)
}

// subscribeLater runs in the background.
func (p *peer) subscribeLater(conn *upstream.Conn, params json.RawMessage, do subscriber) {
	p.agg.work.Go(func() {
		ctx, cancel := context.WithTimeout(p.agg.ctx, requestTimeout)
		defer cancel()
		if err := do(conn, ctx, params); err != nil && p.agg.ctx.Err() == nil {
			p.agg.log.Warn("subscription not changed", "upstream", conn.Name(), "of", string(params), "err", err)
		}
	})
}

func aboutURI(uri string) json.RawMessage {
	return append(append([]byte(`{"uri":`), wire.Quote(uri)...), '}')
}

// listen keeps a stream of notifications for a host of the stateless era until
// the host cancels it (MCP 2026-07-28, "Subscriptions").
func (q *controlRequest) listen(ctx context.Context) (mcp.Result, error) {
	params, ok := q.req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return nil, invalid(`subscriptions/listen needs "notifications"`)
	}
	want := params.Notifications
	taskIDs := wire.Get(q.r.Params, "notifications", "taskIds") // which the SDK does not know
	if taskIDs != nil && q.declaration().tasks != catalog.StatelessTasks {
		return nil, missingTasks()
	}
	id := q.r.ID
	l := notify.Stream{ID: id, URIs: map[string]bool{}, Changes: map[string]bool{
		"notifications/tools/list_changed":     want.ToolsListChanged,
		"notifications/prompts/list_changed":   want.PromptsListChanged,
		"notifications/resources/list_changed": want.ResourcesListChanged,
	}}
	var granted []string
	for _, uri := range want.ResourceSubscriptions {
		if err := q.subscribeTo(ctx, uri, aboutURI(uri), (*upstream.Conn).Subscribe); err != nil {
			q.agg.log.Warn("resource not subscribed", "uri", uri, "err", err)
			continue
		}
		l.URIs[uri] = true
		granted = append(granted, uri)
	}
	l.Tasks = q.subscribeToTasks(ctx, taskIDs)
	q.recipient.AddStream(l)
	if !q.incomplete() { // what changes once this is acknowledged is a change
		now := q.snapshot()
		q.recipient.CountFrom(now, q.followedTasks(), q.reading(now, true))
	}
	defer func() {
		q.recipient.RemoveStream(l)
		q.dropSubscriptions(l.URIs)
		q.dropTasks(l.Tasks)
	}()
	want.ResourceSubscriptions = granted
	agreed, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	if taskIDs != nil {
		agreed = wire.Set(agreed, "taskIds", quoted(slices.Sorted(maps.Keys(l.Tasks))))
	}
	q.host.Notify("notifications/subscriptions/acknowledged", transports.SetMeta(fmt.Appendf(nil, `{"notifications":%s}`, agreed), transports.MetaSubscriptionID, id))
	q.agg.changed.Set()
	select {
	case <-ctx.Done():
	case <-q.agg.ctx.Done():
	}
	return &rawResult{raw: transports.SetMeta(nil, transports.MetaSubscriptionID, id)}, nil
}
