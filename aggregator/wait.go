package aggregator

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// There is one rule for waiting. It holds for lists of MCP, for tools of ours that list
// something, and for requests for what no server is known to have. They wait for servers that
// start for the first time, at most the startup wait of their host after the start, and for
// lists that are being fetched again, at most refreshWait. Then they are answered with what is
// known. A server that an earlier session waited for in vain is waited for only by what is about
// it: see doubts. wait.listed implements it. A host needs its lists for its first request to the model,
// but is patient with calls: those wait callWait at least.

// refreshWait is how long a request waits for lists that are being fetched again: a host
// that was told of a change must not read the old list.
const refreshWait = 2 * time.Second

// callWait is the least time that calls wait for servers that start for the first time.
const callWait = 2 * time.Second

// A wait waits for the lists of servers.
type wait struct {
	session session
	server  string      // to wait for; "" is all
	known   func() bool // ends the wait when it returns true; may be nil
	least   time.Duration
	recheck <-chan struct{} // closed when the tools of server were fetched again; may be nil
}

// until returns when there is nothing left to wait for, or ctx has ended.
func (w wait) until(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.session.agg.ctx, cancel)()
	waited := false
	for began := time.Now(); ctx.Err() == nil; {
		changed, left := w.pending(began) // before known is called, so that no change is missed
		if changed == nil || w.known != nil && w.known() {
			if waited && changed == nil {
				w.noteSlow()
			}
			return
		}
		waited = true
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
		}
	}
}

// pending returns a channel that is closed at the next change that a wait since began is for,
// and how long to wait for it at most; nil if there is nothing to wait for.
func (w wait) pending(began time.Time) (changed <-chan struct{}, left time.Duration) {
	agg := w.session.agg
	if left := time.Until(began.Add(refreshWait)); left > 0 {
		if w.recheck != nil && !isClosed(w.recheck) {
			return w.recheck, left
		}
		for _, u := range agg.set.Everything() {
			if w.server != "" && u.Server.Name != w.server || !agg.fleet.Includes(w.session.Session, u.Server.Name) || w.isOthers(u) {
				continue
			}
			if fetching := agg.fleet.Of(u).Listing.Refreshing(); fetching != nil {
				return fetching, left
			}
		}
	}
	if left := time.Until(began.Add(min(refreshWait, w.session.StartupWait(0)))); left > 0 {
		agg.fleet.Lists.Compare(w.session.Session) // a server may have started since
		if comparing := agg.fleet.Lists.Pending(w.session.Session); comparing != nil {
			return comparing, left
		}
	}
	if left := agg.fleet.Startup.Left(w.session.StartupWait(w.least)); left > 0 {
		return w.starting(w.isDoubted), left
	}
	return nil, 0
}

// isOthers reports whether an upstream lists to another principal alone.
func (w wait) isOthers(u *lazy.Upstream) bool {
	principal := fleet.ListsTo(u)
	return principal != "" && principal != w.session.User
}

// isDoubted reports whether a host as patient as that of w waited for u in vain. What is about one server
// waits for it all the same.
func (w wait) isDoubted(u *lazy.Upstream) bool {
	return w.server == "" && w.session.Single() == nil && w.session.agg.doubts.has(u, w.session.StartupWait(w.least))
}

// noteSlow stores that w waited in vain for the servers that are still starting.
func (w wait) noteSlow() {
	agg, waited := w.session.agg, w.session.StartupWait(w.least)
	var slow []schema.Server
	w.starting(func(u *lazy.Upstream) bool {
		if agg.doubts.add(u, waited) {
			slow = append(slow, u.Server)
		}
		return true // none ends the iteration
	})
	if len(slow) == 0 {
		return
	}
	st := agg.state.Load()
	agg.work.Go(func() {
		for _, server := range slow {
			st.store.NoteFailure(server, store.Failure{Why: "it had not listed its tools " + waited.String() + " after its start", Waited: waited})
		}
	})
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (w wait) isPending() bool {
	changed, _ := w.pending(time.Now())
	return changed != nil
}

// starting returns a channel that is closed when one more first start has ended of a server
// without a stored listing, except those for which without, unless nil, returns true; nil if
// there is no such start. A session about one server has waited for it before.
func (w wait) starting(without func(*lazy.Upstream) bool) <-chan struct{} {
	if w.session.Server != "" {
		return nil
	}
	view := w.session.Plain()
	return w.session.agg.fleet.Startup.Pending(func(u *lazy.Upstream) bool {
		info, known := view.Server(u.Server.Name)
		return (known || w.session.ProfileName == "") && !info.Stored && !w.isOthers(u) && (w.server == "" || u.Server.Name == w.server) && (without == nil || !without(u))
	})
}

// listed starts u, unless it is nil, and returns when the rule for waiting is satisfied. load
// starts u at once, even during a back-off. r, nil on the control plane, bounds the wait for
// the start and is told of its progress. The error says why u does not start, or is that of
// ctx.
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

// recheck fetches the tools of the session's upstream of a server again, if it is connected and has
// not listed the tool of this name. It returns a channel that is closed at the end, or nil.
func (q request) recheck(server, tool string) <-chan struct{} {
	fleet := q.agg.fleet
	u := fleet.ExistingFor(q.Session, fleet.Get(q.Session, server))
	if u == nil {
		return nil
	}
	rest, _ := strings.CutPrefix(tool, server)
	return fleet.Of(u).Listing.Recheck(strings.TrimLeft(rest[strings.LastIndexByte(rest, '/')+1:], "_.:"))
}

// answer answers a question of the data plane: at once if there is nothing to wait for,
// otherwise on a goroutine. asText makes an error text for a model.
func (q request) answer(about surface.Question, asText bool) {
	if about.Known != nil && about.Known() {
		about.Answer()
		return
	}
	r, w := q.r, wait{session: q.session, server: about.Server, known: about.Known, least: callWait}
	if about.Missing != "" {
		w.recheck = q.recheck(about.Server, about.Missing)
	}
	u := w.toStart(about.Load)
	if u == nil && !w.isPending() {
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
			r.Reply(nil, cutOff(r))
		case about.Failed == nil || !about.Failed(err):
			q.failOrLogIn(nil, err, asText && !q.TreeOnly, func() { q.answer(about, asText) })
		}
	})
}

// cutOff returns the error for a request that the end of its session interrupts in a wait.
func cutOff(r *host.Request) error {
	f := r.CutOff("", transports.NotSent)
	return transports.OutcomeError(f.Code, f.Cause.Error(), f.Outcome)
}

// toStart returns the upstream to start for the wait, or nil. Without load it is one that is
// offered and was not listed in this run or an earlier one.
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
		return nil, errors.New(surface.UnknownServer(s, w.server))
	case r == nil && err != nil && isFatal:
		return nil, fatal.Err
	}
	return release, err
}

// incomplete reports whether a session waits for the lists of an upstream that is starting.
// The upstream of a session about one server starts when it is used.
func (w wait) incomplete() bool {
	s := w.session
	return !s.Plain().Complete() && (s.Server != "" || w.starting(nil) != nil)
}
