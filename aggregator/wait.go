package aggregator

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// There is one rule for waiting. What asks what there is, or for something that no
// server is known to have, waits for servers that are starting for the first time, as
// long as the host allows from when they were started, and for lists that are being
// fetched again, for refreshWait. After that it is answered with what there is. The
// lists of MCP wait with awaitListings, tools of ours and calls with an inquiry.

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

// An inquiry is a request of the data plane that what servers list answers: what a tool
// of ours is asked, or a call of something that no server is known to have.
type inquiry struct {
	server string // that it is about; it is loaded if nothing is known of it; "" is all
	// enough, where it is not nil, ends the wait when it reports true.
	enough func() bool
	// answer answers the request, which is the caller's own then.
	answer func()
	// failed, where it is not nil, answers though the server could not be loaded. Where it
	// reports false the error is the answer.
	failed func(err error) bool
	asText bool // an error is text for a model
}

// ask answers an inquiry: at once where there is nothing to wait for, else on a
// goroutine of its own.
func (q inquiry) ask(s *session, r *host.Request) {
	if q.enough != nil && q.enough() {
		q.answer()
		return
	}
	u := s.agg.unlisted(s.view(), q.server)
	if u == nil && s.single() != nil && s.incomplete() {
		u = s.single()
	}
	if changed, _ := s.unsettled(q.server, time.Now()); u == nil && changed == nil {
		q.answer()
		return
	}
	r.Own()
	s.agg.work.Answer(r, func() { q.wait(s, r, u) })
}

// wait loads u, unless it is nil, waits, and answers.
func (q inquiry) wait(s *session, r *host.Request, u *lazy.Upstream) {
	if u != nil {
		_, release, err := s.acquire(r, u, (*lazy.Upstream).Acquire)
		if err != nil {
			if q.failed == nil || !q.failed(err) {
				s.failOrLogIn(r, nil, err, q.asText, func() { q.ask(s, r) })
			}
			return
		}
		defer release()
	}
	ctx, cancel := s.agg.work.ContextOf(r)
	defer cancel()
	s.await(ctx, q.server, q.enough)
	if ctx.Err() != nil {
		r.Reply(nil, transports.ShuttingDown(transports.NotSent))
		return
	}
	q.answer()
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
