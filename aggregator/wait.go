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

// A wait is for what servers list.
type wait struct {
	session *session
	server  string      // the one that is waited for, "" is all
	known   func() bool // ends the wait early when it reports true; may be nil
}

// until returns when there is nothing to wait for any more, or ctx has ended.
func (w wait) until(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.session.agg.ctx, cancel)()
	for began := time.Now(); ctx.Err() == nil; {
		changed, left := w.pending(began) // before known looks, so that no change is missed
		if changed == nil || w.known != nil && w.known() {
			return
		}
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
}

// pending returns a channel that is closed when something has changed that the wait, which
// began then, is for, and how long that is waited for; nil if there is nothing.
func (w wait) pending(began time.Time) (changed <-chan struct{}, left time.Duration) {
	agg := w.session.agg
	if left := time.Until(began.Add(refreshWait)); left > 0 {
		for _, u := range agg.set.Everything() {
			if w.server != "" && u.Server.Name != w.server {
				continue
			}
			if fetching := agg.peerOf(u).listing.Refreshing(); fetching != nil {
				return fetching, left
			}
		}
	}
	if left := agg.startup.left(w.session.startupWait()); left > 0 {
		return w.starting(), left
	}
	return nil, 0
}

// starting returns a channel that is closed when another first start has ended of a server
// that is not known from an earlier run, nil if none goes on: nobody waits for one that is
// known. A session that is about one server has waited for that.
func (w wait) starting() <-chan struct{} {
	if w.session.only != "" {
		return nil
	}
	view := w.session.agg.catalog.View()
	return w.session.agg.startup.pending(func(u *lazy.Upstream) bool {
		info, _ := view.Server(u.Server.Name)
		return !info.Stored && (w.server == "" || u.Server.Name == w.server)
	})
}

// whenListed answers a question of the data plane: at once where there is nothing to wait
// for, else on a goroutine of its own. asText has an error be text for a model.
func (s *session) whenListed(r *host.Request, q surface.Question, asText bool) {
	if q.Known != nil && q.Known() {
		q.Answer()
		return
	}
	w := wait{s, q.Server, q.Known}
	u := w.toStart(q.Load)
	if changed, _ := w.pending(time.Now()); u == nil && changed == nil {
		q.Answer()
		return
	}
	r.Own()
	s.agg.work.Answer(r, func() {
		if u != nil {
			release, err := w.start(r, u, q.Load)
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
		w.until(ctx)
		if ctx.Err() != nil {
			r.Reply(nil, transports.ShuttingDown(transports.NotSent))
			return
		}
		q.Answer()
	})
}

// toStart returns the upstream that is started for the wait, nil if none is: one that is
// offered and has not been listed yet, in this run or an earlier one, or with load in any
// case.
func (w wait) toStart(load bool) *lazy.Upstream {
	s, u := w.session, w.session.agg.set.Get(w.server)
	if load {
		return u
	}
	if info, ok := s.view().Server(w.server); ok && !info.Loaded && !info.Stored && isOffered(u) {
		return u
	}
	if only := s.single(); only != nil && s.incomplete() {
		return only
	}
	return nil
}

// start starts a server. load has it start at once, though it is backing off.
func (w wait) start(r *host.Request, u *lazy.Upstream, load bool) (release func(), err error) {
	if !load {
		_, release, err = w.session.acquire(r, u, (*lazy.Upstream).Acquire)
		return release, err
	}
	_, release, err = w.session.acquire(r, u, (*lazy.Upstream).Load)
	if evicted, ok := errors.AsType[*lazy.EvictedError](err); ok && evicted.Err == nil { // by an earlier request
		return nil, errors.New(surface.UnknownServer(surfaceCall{session: w.session}, w.server))
	}
	return release, err
}

// awaitListings waits before a list of MCP is answered.
func (s *session) awaitListings(ctx context.Context) error {
	if err := s.awaitSingle(ctx); err != nil {
		return err
	}
	wait{session: s}.until(ctx)
	return ctx.Err()
}

// awaitSingle waits for the upstream that a session is about, where that is one.
func (s *session) awaitSingle(ctx context.Context) error {
	u := s.single()
	if u == nil {
		return nil
	}
	u, err := s.upstreamFor(u)
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
	return !s.agg.catalog.View().Complete() && wait{session: s}.starting() != nil
}
