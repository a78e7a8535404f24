package aggregator

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// There is one rule for waiting. What asks what there is, or for something that no
// server is known to have, waits for servers that are starting for the first time, as
// long as the host allows from when they were started, and for lists that are being
// fetched again, for refreshWait. After that it is answered with what there is. The
// one function that waits, starts and fails is wait.listed: for the lists of MCP, for tools of
// ours on every surface, and for calls.

// refreshWait is how long a request waits for lists that are being fetched again: a host
// that was told of a change must not read the list of before.
const refreshWait = 2 * time.Second

// A wait is for what servers list.
type wait struct {
	session session
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
			if w.server != "" && u.Server.Name != w.server || !agg.fleet.Includes(w.session.Session, u.Server.Name) {
				continue
			}
			if fetching := agg.fleet.Of(u).Listing.Refreshing(); fetching != nil {
				return fetching, left
			}
		}
	}
	if left := agg.fleet.Startup.Left(w.session.StartupWait()); left > 0 {
		return w.starting(), left
	}
	return nil, 0
}

func (w wait) isPending() bool {
	changed, _ := w.pending(time.Now())
	return changed != nil
}

// starting returns a channel that is closed when another first start has ended of a server
// that is not known from an earlier run, nil if none goes on: nobody waits for one that is
// known. A session that is about one server has waited for that.
func (w wait) starting() <-chan struct{} {
	if w.session.Server != "" {
		return nil
	}
	view := w.session.Plain()
	return w.session.agg.fleet.Startup.Pending(func(u *lazy.Upstream) bool {
		info, known := view.Server(u.Server.Name)
		return (known || w.session.ProfileName == "") && !info.Stored && (w.server == "" || u.Server.Name == w.server)
	})
}

// listed returns when what the wait is for is listed, or as much of it as the rule has it wait
// for, and starts u before, unless that is nil; load has it start at once, though it is backing
// off. r bounds the wait for the start and hears of it; the control plane has none. The error
// is why u does not start, or that of ctx.
func (w wait) listed(ctx context.Context, r *host.Request, u *lazy.Upstream, load bool) error {
	if u != nil {
		release, err := w.start(ctx, r, u, load)
		if err != nil {
			return err
		}
		defer release()
	}
	w.until(ctx)
	return ctx.Err()
}

// answer answers a question of the data plane: at once where there is nothing to wait for,
// else on a goroutine of its own. asText has an error be text for a model.
func (q request) answer(about surface.Question, asText bool) {
	if about.Known != nil && about.Known() {
		about.Answer()
		return
	}
	r, w := q.r, wait{q.session, about.Server, about.Known}
	u := w.toStart(about.Load)
	if changed, _ := w.pending(time.Now()); u == nil && changed == nil {
		about.Answer()
		return
	}
	r.CopyParams()
	leave := q.agg.calls.Join(q.Session, r, w.toStart(false))
	q.agg.work.AnswerWithin(r, func(ctx context.Context) {
		defer leave()
		switch err := w.listed(ctx, r, u, about.Load); {
		case err == nil:
			about.Answer()
		case err == ctx.Err():
			r.Reply(nil, transports.ShuttingDown(transports.NotSent))
		case about.Failed == nil || !about.Failed(err):
			q.failOrLogIn(nil, err, asText && !q.TreeOnly, func() { q.answer(about, asText) })
		}
	})
}

// toStart returns the upstream that is started for the wait, nil if none is: one that is
// offered and has not been listed yet, in this run or an earlier one, or with load in any
// case.
func (w wait) toStart(load bool) *lazy.Upstream {
	s, u := w.session, w.session.agg.fleet.Get(w.session.Session, w.server)
	if load {
		return u
	}
	if info, ok := s.View().Server(w.server); ok && !info.Loaded && !info.Stored && fleet.IsOffered(u) {
		return u
	}
	if only := s.Single(); only != nil && (wait{session: s}).incomplete() {
		return only
	}
	return nil
}

func (w wait) start(ctx context.Context, r *host.Request, u *lazy.Upstream, load bool) (release func(), err error) {
	s := w.session
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.agg.ctx, cancel)()
	_, release, err = s.agg.fleet.Acquire(ctx, s.Session, r, u, load)
	evicted, isEvicted := errors.AsType[*lazy.EvictedError](err)
	fatal, isFatal := errors.AsType[*FatalError](context.Cause(s.agg.ctx))
	switch {
	case load && isEvicted && evicted.Err == nil: // by an earlier request
		return nil, errors.New(surface.UnknownServer(surfaceCall{request: request{session: s}}, w.server))
	case r == nil && err != nil && isFatal:
		return nil, fatal.Err
	}
	return release, err
}

// incomplete reports whether an upstream that is starting has yet to say to a session
// what it has. The one that a session is about starts when it is used.
func (w wait) incomplete() bool {
	s := w.session
	complete := s.Plain().Complete()
	return !complete && (s.Server != "" || w.starting() != nil)
}
