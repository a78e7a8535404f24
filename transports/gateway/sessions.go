package gateway

import (
	"container/list"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// maxSessions is the limit of sessions at once.
const maxSessions = 20_000

// sessions is the table of sessions. At the limit, the account with the most gives way.
type sessions struct {
	most int

	mu    sync.Mutex
	byID  map[string]*session
	of    map[string]*sessionsOf // by account
	total int                    // includes sessions that are being opened
}

// sessionsOf are the sessions of one account, the longest unused first.
type sessionsOf struct {
	count  int       // includes sessions that are being opened
	fresh  list.List // sessions (*session) that sent no request but initialize and ping
	called list.List // the others
}

// enter reserves a place for a new session of an account. If there is no place, it returns
// false and the session that should end first, nil if there is none.
func (t *sessions) enter(account string) (old *session, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.total >= t.most {
		return t.sessionToEndLocked(account), false
	}
	if t.of[account] == nil {
		t.of[account] = &sessionsOf{}
	}
	t.of[account].count++
	t.total++
	return nil, true
}

// sessionToEndLocked returns the longest unused session of the account with the most sessions,
// preferably a fresh one.
func (t *sessions) sessionToEndLocked(account string) *session {
	fullest := t.of[account]
	for _, of := range t.of {
		if fullest == nil || of.count > fullest.count+1 {
			fullest = of
		}
	}
	if fullest == nil {
		return nil
	}
	for _, l := range []*list.List{&fullest.fresh, &fullest.called} {
		for e := l.Front(); e != nil; e = e.Next() {
			if s := e.Value.(*session); s.unused() {
				return s
			}
		}
	}
	return nil
}

// add adds a session that has a place to the table.
func (t *sessions) add(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[s.id] = s
	s.among = &t.of[s.account].fresh
	s.at = s.among.PushBack(s)
}

// leave removes a session from the table and gives its place back.
func (t *sessions) leave(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, s.id)
	if s.at != nil {
		s.among.Remove(s.at)
		s.at = nil
	}
	t.total--
	if of := t.of[s.account]; of.count > 1 {
		of.count--
	} else {
		delete(t.of, s.account)
	}
}

// get returns a session, nil if unknown, and marks it as the last used.
func (t *sessions) get(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s != nil {
		s.among.MoveToBack(s.at)
	}
	return s
}

// hasCalled records that a session has sent a request.
func (t *sessions) hasCalled(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.of[s.account]; s.at != nil && s.among == &of.fresh {
		s.among.Remove(s.at)
		s.among = &of.called
		s.at = s.among.PushBack(s)
	}
}

// makeRoom reserves a place for a new session. It may end another one for that.
func (t *sessions) makeRoom(account string) bool {
	for range 100 { // the old session may come into use meanwhile
		old, ok := t.enter(account)
		switch {
		case ok:
			return true
		case old == nil:
			return false
		case old.host.Waiting():
			t.get(old.id) // try another one: its host may fetch the answer
		case t.retire(old, func() bool { return old.users == 0 }):
			close(old.gone)
			old.drain(context.Background())
		}
	}
	return false
}

// endSession ends a session, once, without waiting for its requests in flight.
func (t *sessions) endSession(s *session) { t.endUnused(context.Background(), s, time.Time{}) }

// endUnused is endSession for a session that was unused since a time. If since is zero, it
// ends any session.
func (t *sessions) endUnused(ctx context.Context, s *session, since time.Time) {
	if t.retire(s, func() bool { return since.IsZero() || s.unusedLocked(since) }) {
		close(s.gone)
		s.drain(ctx)
	}
}

// retire marks a session as ended and removes it from the table. It returns false if the
// session has already ended, or if may, which is called with s.mu held, returns false.
func (t *sessions) retire(s *session, may func() bool) bool {
	s.mu.Lock()
	first := !s.ended && may()
	s.ended = s.ended || first
	s.mu.Unlock()
	if first {
		t.leave(s)
	}
	return first
}

func (t *sessions) all() []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.byID))
}

// endsAtOnce is how many sessions the reaper ends at once. If there are so many, it waits up to
// endWithin for one of them.
const (
	endsAtOnce = 64
	endWithin  = time.Second
)

// A reaper ends sessions concurrently, so that a slow one does not delay the others.
type reaper struct {
	g    *Gateway
	busy chan struct{}
	work sync.WaitGroup
}

// reap ends idle and evicted sessions until ctx ends.
func (g *Gateway) reap(ctx context.Context) {
	r := &reaper{g: g, busy: make(chan struct{}, endsAtOnce)}
	defer r.work.Wait()
	var tick <-chan time.Time
	if g.opts.SessionIdle > 0 {
		ticker := time.NewTicker(min(max(g.opts.SessionIdle/4, 10*time.Millisecond), time.Minute))
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-g.evicted:
			if !r.end(s, time.Time{}) {
				g.evicted <- s // has room for all sessions
			}
		case now := <-tick:
			r.endIdle(now)
		}
	}
}

// endIdle ends the sessions that have been idle for too long.
func (r *reaper) endIdle(now time.Time) {
	then := now.Add(-r.g.opts.SessionIdle)
	for _, s := range r.g.sessions.all() {
		if s.idleSince(then) && !r.end(s, then) {
			return
		}
	}
}

// end starts endUnused on a goroutine. It returns false if too many sessions are being ended.
func (r *reaper) end(s *session, since time.Time) bool {
	patience := time.NewTimer(endWithin)
	defer patience.Stop()
	select {
	case r.busy <- struct{}{}:
	case <-patience.C:
		return false
	}
	wire.ExpectQuiet() // many sessions may end at the same time
	r.work.Go(func() {
		defer func() { <-r.busy }()
		defer r.g.recovered()
		r.g.sessions.endUnused(context.Background(), s, since)
	})
	return true
}
