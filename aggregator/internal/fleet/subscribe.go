package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A Subscriber begins or ends a subscription at an upstream.
type Subscriber func(conn *upstream.Conn, ctx context.Context, params json.RawMessage) error

// IsSubscribed reports whether a host of the upstream is subscribed to a resource, by the server's own
// URI.
func (p *Endpoint) IsSubscribed(uri string) bool {
	server := p.Upstream.Server.Name
	scoped := names.Scoped(server, uri)
	if p.Upstream.Owner == "" {
		return p.fleet.Sessions.IsSubscribed(server, uri) || p.fleet.Sessions.IsSubscribed(server, scoped)
	}
	all := p.Source().Subscriptions()
	return all[uri] != nil || all[scoped] != nil
}

// resourceUpdated forwards that a resource changed: to the sessions that are subscribed to it, or to
// a resource that contains it, and to no others. Each gets the URI that it knows.
func (p *Endpoint) resourceUpdated(params json.RawMessage) {
	server := p.Upstream.Server.Name
	own, _ := wire.Text(wire.Get(params, "uri"))
	for _, uri := range [...]string{own, names.Scoped(server, own)} {
		subscribers := p.Source().Subscribers(uri)
		if len(subscribers) > 0 && uri != own {
			params = wire.Set(params, "uri", wire.Quote(uri))
		}
		for _, s := range subscribers {
			if u, _, _ := p.fleet.Names.Resource(s, uri); u != nil && u.Server.Name != server {
				continue // it is another server's for this session
			}
			s.Recipient.Notify("notifications/resources/updated", params, func(st notify.Stream) bool { return st.Covers(uri) })
		}
	}
}

// DropSubscriptions ends the subscriptions of a session to uris that no other host has, if the
// upstream is connected.
func (f *Fleet) DropSubscriptions(s *sessions.Session, uris map[string]bool) {
	for uri := range uris {
		owner, own, _ := f.Names.Resource(s, uri)
		u := f.ExistingFor(s, owner)
		if u == nil || u.Conn() == nil || f.Of(u).IsSubscribed(own) {
			continue
		}
		f.Of(u).subscribeLater(u.Conn(), AboutURI(own), (*upstream.Conn).Unsubscribe)
	}
}

// renewSubscriptions sends a new connection the subscriptions of the previous one.
func (p *Endpoint) renewSubscriptions(conn *upstream.Conn) {
	subscribe := (*upstream.Conn).Subscribe
	if conn.Remote() { // the resources may have changed in between
		subscribe = func(conn *upstream.Conn, ctx context.Context, params json.RawMessage) error {
			defer p.resourceUpdated(params)
			return conn.Subscribe(ctx, params)
		}
	}
	for _, params := range p.subscriptions(conn.Era()) {
		p.subscribeLater(conn, params, subscribe)
	}
}

// hasSubscribers reports whether hosts wait for notifications of the upstream.
func (p *Endpoint) hasSubscribers() bool { return len(p.subscriptions(transports.Stateless)) > 0 }

// subscriptions returns the params of the subscriptions that hosts have at the upstream, those
// to tasks only if it is of the stateless era.
func (p *Endpoint) subscriptions(era transports.Era) (all []json.RawMessage) {
	f := p.fleet
	for topic, s := range p.Source().Subscriptions() {
		owner, own, _ := f.Names.Resource(s, topic)
		params := AboutURI(own)
		if id, isTask := notify.TaskOf(topic); isTask {
			if era != transports.Stateless {
				continue
			}
			owner, own = f.TaskOwner(s, id)
			params = task.About(own)
		}
		if f.ExistingFor(s, owner) == p.Upstream {
			all = append(all, params)
		}
	}
	return all
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

// TaskOwner returns the server in a host's id of a task, nil if it is unknown, and the server's own
// id.
func (f *Fleet) TaskOwner(s *sessions.Session, id string) (u *lazy.Upstream, own string) {
	if u := f.Single(s); u != nil {
		return u, id
	}
	server, own, _ := strings.Cut(id, "/")
	return f.Get(s, server), own
}

// ToHostID replaces the upstream's id of a task, at path in text, with the id for a session's
// host.
func (p *Endpoint) ToHostID(s *sessions.Session, text json.RawMessage, path ...string) json.RawMessage {
	if s.IsSingleServer() {
		return text
	}
	return task.ToHostID(p.Upstream.Server.Name, text, path...)
}

// ToHostRelation does the same for the task that a message refers to in its _meta.
func (p *Endpoint) ToHostRelation(s *sessions.Session, text json.RawMessage) json.RawMessage {
	if s.IsSingleServer() || !p.relatesTasks.Load() {
		return text
	}
	return task.ToHostRelation(p.Upstream.Server.Name, text)
}

// toUpstreamRelation reverses ToHostRelation in a host's answer.
func (p *Endpoint) toUpstreamRelation(s *sessions.Session, text json.RawMessage) json.RawMessage {
	if s.IsSingleServer() || !p.relatesTasks.Load() {
		return text
	}
	return task.ToUpstreamRelation(p.Upstream.Server.Name, text)
}

// Tasks returns the tasks of an upstream for a session, under its ids.
func (f *Fleet) Tasks(s *sessions.Session, ctx context.Context, u *lazy.Upstream) ([]json.RawMessage, error) {
	conn, release, err := u.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	tasks, err := conn.List(ctx, "tasks/list", "tasks", nil)
	tasks = slices.DeleteFunc(tasks, func(task json.RawMessage) bool {
		own, _ := wire.Text(wire.Get(task, "taskId"))
		if err == nil {
			err = f.Of(u).LearnTask(ctx, own)
		}
		return !f.HasTask(s, u, own)
	})
	for i := range tasks {
		tasks[i] = f.Of(u).ToHostID(s, tasks[i], "taskId")
	}
	return tasks, err
}

// SubscribeToTasks subscribes to tasks at their servers and returns the granted ones. The ids are
// the host's, raw JSON.
func (f *Fleet) SubscribeToTasks(s *sessions.Session, ctx context.Context, ids json.RawMessage) (granted map[string]bool) {
	granted = map[string]bool{}
	for raw := range wire.Elements(ids) {
		id, _ := wire.Text(raw)
		u, own := f.TaskOwner(s, id)
		if u != nil {
			_ = f.Of(u).LearnTask(ctx, own) // is logged
		}
		if !IsOffered(u) || !f.HasTask(s, u, own) {
			continue
		}
		if u = f.ExistingFor(s, u); u == nil {
			continue // it has no tasks of the session's
		}
		conn, release, err := u.Acquire(ctx)
		if err == nil {
			if conn.Era() == transports.Stateless {
				if err = conn.Subscribe(ctx, task.About(own)); err == nil {
					granted[id] = true
				}
			}
			release()
		}
		if err != nil {
			f.Log.Warn("task not subscribed", "upstream", u.Server.Name, "err", err)
		}
	}
	return granted
}

// taskUpdated forwards the status of a task, under the host's id, to the streams that
// name it.
func (p *Endpoint) taskUpdated(params json.RawMessage) {
	own, _ := wire.Text(wire.Get(params, "taskId"))
	for _, s := range p.Source().Subscribers(notify.TaskTopic(own), notify.TaskTopic(p.Upstream.Server.Name+"/"+own)) {
		params := p.shown(s, "notifications/tasks", params)
		id, _ := wire.Text(wire.Get(params, "taskId"))
		s.Recipient.Notify("notifications/tasks", params, func(st notify.Stream) bool { return st.Tasks[id] })
	}
}

// DropTasks ends the subscriptions to tasks that no stream names any more.
func (f *Fleet) DropTasks(s *sessions.Session, ids map[string]bool) {
	for id := range ids {
		u, own := f.TaskOwner(s, id)
		u = f.ExistingFor(s, u)
		if u == nil || u.Conn() == nil || u.Conn().Era() != transports.Stateless || f.Sessions.IsSubscribed("", notify.TaskTopic(id)) {
			continue
		}
		f.Of(u).subscribeLater(u.Conn(), task.About(own), (*upstream.Conn).Unsubscribe)
	}
}

// MayLearnTask reports whether LearnTask may find the owner of a task.
func (p *Endpoint) MayLearnTask(own string) bool {
	return !Isolated(&p.Upstream.Server) && p.fleet.TaskOwners.MayLearn(p.Upstream.Server.Name, own)
}

// LearnTask finds the owner of a task that this replica does not know. It may block.
// With an error the owner cannot be known now.
func (p *Endpoint) LearnTask(ctx context.Context, own string) error {
	if p.MayLearnTask(own) && p.fleet.TaskOwners.Learn(ctx, p.Upstream.Server.Name, own) != nil {
		return transports.OutcomeError(transports.CodeNotPlaced, "it is not known whose the task is: the state of the cluster cannot be reached now; call again", transports.NotSent)
	}
	return nil
}

// AddTask records that a call of a session became a task, by the upstream's id, a JSON string, and
// its lifetime. stored is closed when other replicas can find it; nil if there are none.
func (p *Endpoint) AddTask(s *sessions.Session, id, ttl json.RawMessage) (stored <-chan struct{}) {
	own, ok := wire.Text(id)
	if !ok || Isolated(&p.Upstream.Server) || s.Replica {
		return nil
	}
	return p.fleet.TaskOwners.Set(s.User, p.Upstream.Server.Name, own, ttl)
}

// HasTask reports whether a task of an upstream, by its id there, belongs to a session's user.
func (f *Fleet) HasTask(s *sessions.Session, u *lazy.Upstream, own string) bool {
	user, _ := f.TaskOwners.Of(u.Server.Name, own)
	return Isolated(&u.Server) || user == s.User
}
