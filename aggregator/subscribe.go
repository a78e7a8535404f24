package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// subscribe passes a subscription on to the owner of the resource. It passes on the end of
// a subscription when no host wants it any more.
func (q request) subscribe(ctx context.Context) error {
	uri, ok := wire.Text(wire.Get(q.r.Params, "uri"))
	if !ok {
		return transports.InvalidParams("%s needs a string \"uri\"", q.r.Method)
	}
	if q.r.Method == "resources/unsubscribe" {
		q.Recipient.SetSubscribed(uri, false)
		q.Count()
		owner, own, _ := q.agg.fleet.Names.Resource(q.Session, uri)
		u := q.agg.fleet.ExistingFor(q.Session, owner)
		if u == nil && q.agg.sessions.IsSubscribed("", uri) || u != nil && q.agg.fleet.Of(u).IsSubscribed(own) {
			return nil
		}
		return q.subscribeTo(ctx, uri, q.r.Params, (*upstream.Conn).Unsubscribe)
	}
	err := keeps("the URI of a subscription", len(uri))
	if err != nil {
		return err
	}
	added := q.Recipient.SetSubscribed(uri, true) // before the upstream is: an update may follow its answer
	if !q.Count() {
		err = errHeld
	} else {
		err = q.subscribeTo(ctx, uri, q.r.Params, (*upstream.Conn).Subscribe)
	}
	if err != nil && added {
		q.Recipient.SetSubscribed(uri, false)
		q.Count()
	}
	return err
}

// subscribeTo calls do for the owner of a resource. It waits for upstreams that are starting.
func (q request) subscribeTo(ctx context.Context, uri string, params json.RawMessage, do fleet.Subscriber) error {
	to := q.resource(uri, transports.Handshake)
	if !to.known() {
		if err := q.awaitLists(ctx); err != nil {
			return err
		}
	}
	u, own, _ := to.owner()
	if u == nil {
		return q.notFound(to)
	}
	if own != uri {
		params = wire.Set(params, "uri", wire.Quote(own))
	}
	u, err := q.agg.fleet.For(q.Session, u)
	if err != nil {
		return err
	}
	conn, release, err := u.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return do(conn, ctx, params)
}

// listen keeps a stream of notifications for a host of the stateless era until
// the host cancels it (MCP 2026-07-28, "Subscriptions").
func (q *controlRequest) listen(ctx context.Context) (mcp.Result, error) {
	params, ok := q.req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return nil, transports.InvalidParams(`subscriptions/listen needs "notifications"`)
	}
	want := params.Notifications
	taskIDs := wire.Get(q.r.Params, "notifications", "taskIds") // not known to the SDK
	if taskIDs != nil && q.Declaration().Tasks != catalog.StatelessTasks {
		return nil, task.Missing()
	}
	id := q.r.ID
	l := notify.Stream{ID: id, URIs: map[string]bool{}, Changes: map[string]bool{
		"notifications/tools/list_changed":     want.ToolsListChanged,
		"notifications/prompts/list_changed":   want.PromptsListChanged,
		"notifications/resources/list_changed": want.ResourcesListChanged,
	}}
	var granted []string
	for _, uri := range want.ResourceSubscriptions {
		if err := q.subscribeTo(ctx, uri, fleet.AboutURI(uri), (*upstream.Conn).Subscribe); err != nil {
			q.agg.log.Warn("resource not subscribed", "uri", uri, "err", err)
			continue
		}
		l.URIs[uri] = true
		granted = append(granted, uri)
	}
	l.Tasks = q.agg.fleet.SubscribeToTasks(q.Session, ctx, taskIDs)
	q.Recipient.AddStream(l)
	if !(wait{session: q.session}).incomplete() { // notify of what changes after the acknowledgement
		now := q.Snapshot()
		q.Recipient.CountFrom(now, q.FollowedTasks(), q.Reading(now, true))
	}
	defer func() {
		q.Recipient.RemoveStream(l)
		q.agg.fleet.DropSubscriptions(q.Session, l.URIs)
		q.agg.fleet.DropTasks(q.Session, l.Tasks)
	}()
	want.ResourceSubscriptions = granted
	agreed, err := json.Marshal(want)
	if err != nil {
		return nil, err
	}
	if taskIDs != nil {
		agreed = wire.Set(agreed, "taskIds", quoted(slices.Sorted(maps.Keys(l.Tasks))))
	}
	q.Host.Notify("notifications/subscriptions/acknowledged", transports.SetMeta(fmt.Appendf(nil, `{"notifications":%s}`, agreed), transports.MetaSubscriptionID, id))
	q.agg.changed.Set()
	select {
	case <-ctx.Done():
	case <-q.agg.ctx.Done():
	}
	return &rawResult{raw: transports.SetMeta(nil, transports.MetaSubscriptionID, id)}, nil
}

// setLevel keeps the log level of a session, and sets at upstreams the most verbose level
// of all sessions.
func (q request) setLevel(ctx context.Context) error {
	if !q.Offers("logging") {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	level := notify.Level{Params: bytes.Clone(q.r.Params)}
	level.Severity = notify.Severity(wire.Get(level.Params, "level"))
	if level.Severity < 0 {
		name, _ := wire.Text(wire.Get(level.Params, "level"))
		return transports.InvalidParams("unknown log level %q; want one of %s", name, strings.Join(notify.Levels, ", "))
	}
	if err := keeps("the request for a log level", len(level.Params)); err != nil {
		return err
	}
	before := q.agg.fleet.Verbosities(q.Session)
	q.Recipient.SetLevel(level)
	if !q.Count() {
		q.Recipient.SetLevel(notify.Level{})
		return errHeld
	}
	fleet.LevelsOf(q.agg.fleet, before, func(before, now notify.Level) bool {
		return level.Severity <= now.Severity || now.Severity != before.Severity
	}).Send(ctx, q.agg.fleet)
	return nil
}
