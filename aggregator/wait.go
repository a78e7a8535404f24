package aggregator

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// There is one rule for waiting. What asks what there is, or for something that no
// server is known to have, waits for servers that are starting for the first time, as
// long as the host allows from when they were started, and for lists that are being
// fetched again, for refreshWait. After that it is answered with what there is. The
// lists of MCP wait in awaitListings, tools of ours and calls in whenListed.

// refreshWait is how long a request waits for lists that are being fetched again: a host
// that was told of a change must not read the list of before.
const refreshWait = 2 * time.Second

// awaitListings waits before a list of MCP is answered.
func (s *session) awaitListings(ctx context.Context) error {
	if err := s.awaitSingle(ctx); err != nil {
		return err
	}
	s.await(ctx, "", nil)
	return ctx.Err()
}

// await waits for a server, or with "" for all. It ends early when enough, which may be
// nil, reports true.
func (s *session) await(ctx context.Context, server string, enough func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.agg.ctx, cancel)()
	began := time.Now()
	for ctx.Err() == nil {
		changed, left := s.unsettled(server, began) // before enough looks, so that no change is missed
		if changed == nil || enough != nil && enough() {
			return
		}
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
}

// unsettled returns a channel that is closed when something has changed that a wait,
// which began then, is for, and how long that is waited for; nil if there is nothing.
func (s *session) unsettled(server string, began time.Time) (changed <-chan struct{}, left time.Duration) {
	if left := time.Until(began.Add(refreshWait)); left > 0 {
		for _, u := range s.agg.set.Everything() {
			if server != "" && u.Server.Name != server {
				continue
			}
			if fetching := s.agg.peerOf(u).listing.Refreshing(); fetching != nil {
				return fetching, left
			}
		}
	}
	if left := s.agg.startup.left(s.startupWait()); left > 0 {
		return s.starting(server), left
	}
	return nil, 0
}

// starting returns a channel that is closed when another first start has ended, nil if
// none goes on, of this server or with "" of any, that is not known from an earlier run:
// nobody waits for one that is. A session that is about one server has waited for that.
func (s *session) starting(server string) <-chan struct{} {
	if s.only != "" {
		return nil
	}
	view := s.agg.catalog.View()
	return s.agg.startup.pending(func(u *lazy.Upstream) bool {
		info, _ := view.Server(u.Server.Name)
		return !info.Stored && (server == "" || u.Server.Name == server)
	})
}

// whenListed answers a question of the data plane: at once where there is nothing to wait for, else
// on a goroutine of its own. asText has an error be text for a model.
func (s *session) whenListed(r *host.Request, q surface.Question, asText bool) {
	if q.Known != nil && q.Known() {
		q.Answer()
		return
	}
	u := s.agg.unlisted(s.view(), q.Server)
	switch {
	case q.Load:
		u = s.agg.set.Get(q.Server)
	case u == nil && s.single() != nil && s.incomplete():
		u = s.single()
	}
	if changed, _ := s.unsettled(q.Server, time.Now()); u == nil && changed == nil {
		q.Answer()
		return
	}
	r.Own()
	s.agg.work.Answer(r, func() {
		if u != nil {
			release, err := s.start(r, u, q)
			if err != nil {
				if q.Failed == nil || !q.Failed(err) {
					s.failOrLogIn(r, nil, err, asText && !s.tree, func() { s.whenListed(r, q, asText) })
				}
				return
			}
			defer release()
		}
		ctx, cancel := s.agg.work.ContextOf(r)
		defer cancel()
		s.await(ctx, q.Server, q.Known)
		if ctx.Err() != nil {
			r.Reply(nil, transports.ShuttingDown(transports.NotSent))
			return
		}
		q.Answer()
	})
}

// start starts the server that a question is about, and lists it.
func (s *session) start(r *host.Request, u *lazy.Upstream, q surface.Question) (release func(), err error) {
	if !q.Load {
		_, release, err = s.acquire(r, u, (*lazy.Upstream).Acquire)
		return release, err
	}
	_, release, err = s.acquire(r, u, (*lazy.Upstream).Load)
	if evicted, ok := errors.AsType[*lazy.EvictedError](err); ok && evicted.Err == nil { // by an earlier request
		return nil, errors.New(surface.UnknownServer(surfaceCall{session: s}, q.Server))
	}
	return release, err
}

// unlisted returns the upstream of a server that is offered and has not been
// listed yet, in this run or an earlier one, else nil.
func (a *Aggregator) unlisted(view *catalog.View, server string) *lazy.Upstream {
	info, ok := view.Server(server)
	if u := a.set.Get(server); ok && !info.Loaded && !info.Stored && isOffered(u) {
		return u
	}
	return nil
}

// awaitSingle waits for the upstream that a session is about, where that is one.
func (s *session) awaitSingle(ctx context.Context) error {
	u := s.single()
	if u == nil {
		return nil
	}
	u, err := s.own(u)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.agg.ctx, cancel)()
	_, release, err := u.Acquire(ctx)
	if err == nil {
		release()
		return nil
	}
	if fatal, ok := errors.AsType[*FatalError](context.Cause(s.agg.ctx)); ok {
		return fatal.Err
	}
	return err
}

// incomplete reports whether an upstream that is starting has yet to say to a session
// what it has. The one that a session is about starts when it is used.
func (s *session) incomplete() bool {
	if s.only != "" {
		return !s.views()[catalog.NoTasks].Complete()
	}
	return !s.agg.catalog.View().Complete() && s.starting("") != nil
}
