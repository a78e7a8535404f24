package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/kv/memkv"
)

// A group is replicas that reach each other.
type group struct {
	mu     sync.Mutex
	byAddr map[string]*Replica
	cut    map[string]bool // addresses that are not reached
}

func (g *group) join(t *testing.T, store kv.Store, name string) *Replica {
	t.Helper()
	r := join(t, store, name, func(o *Options) {
		o.Ask = func(ctx context.Context, address string, q Question) error {
			g.mu.Lock()
			other := g.byAddr[address]
			cut := g.cut[address] || g.cut[name+":1"]
			g.mu.Unlock()
			if other == nil || cut {
				return errors.New("not reached")
			}
			return other.Answer(q)
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byAddr == nil {
		g.byAddr, g.cut = map[string]*Replica{}, map[string]bool{}
	}
	g.byAddr[name+":1"] = r
	return r
}

// reach has a replica be reached by others, or not.
func (g *group) reach(name string, reached bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut[name+":1"] = !reached
}

func TestAnElectionInTheStoreIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		var all []*Replica
		var leases []*Lease
		cables := []*memkv.Connection{m.Connect(), m.Connect(), m.Connect()}
		for i, name := range []string{"a", "b", "c"} {
			r := g.join(t, cables[i], name)
			defer r.Close()
			all = append(all, r)
			leases = append(leases, take(t, r, name))
		}
		time.Sleep(5 * Beat)
		for _, c := range cables {
			c.Cut()
		}
		time.Sleep(9 * time.Second)
		for i, r := range all {
			if !r.Valid() || isClosed(leases[i].Lost()) || len(r.Members()) != 3 {
				t.Errorf("%s: valid %t, %d members", r.options.Name, r.Valid(), len(r.Members()))
			}
			if _, err := r.Take(t.Context(), all[(i+1)%3].options.Name); err == nil {
				t.Error("taken from one that is valid")
			} else if _, held := errors.AsType[*HeldError](err); !held {
				t.Errorf("got %v, want that it is held", err)
			}
			take(t, r, r.options.Name).Release() // what is held here is shared as ever
		}
		for _, c := range cables {
			c.Heal()
		}
		time.Sleep(10 * time.Second)
		for i, r := range all {
			if m, _ := r.Member(r.ID()); m.Epoch != 1 || isClosed(leases[i].Lost()) {
				t.Errorf("%s is in epoch %d", r.options.Name, m.Epoch)
			}
			leases[i].Release()
		}
	})
}

// It is promised for Patience, not for ever: somebody new may have joined where the store
// is, whom nobody here knows.
func TestALongOutageOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		ca, cb := m.Connect(), m.Connect()
		a, b := g.join(t, ca, "a"), g.join(t, cb, "b")
		defer a.Close()
		defer b.Close()
		l := take(t, a, "git")
		time.Sleep(5 * Beat)
		ca.Cut()
		cb.Cut()
		cut := time.Now()
		<-l.Lost()
		if ran := time.Since(cut); ran < Patience-2*Beat || ran > Patience {
			t.Errorf("it was lost after %v", ran)
		}
		l.Release()
		time.Sleep(time.Hour)
		if _, err := b.Take(t.Context(), "files"); !errors.Is(err, kv.ErrUnavailable) || !b.Degraded() {
			t.Errorf("got %v, degraded: %t", err, b.Degraded())
		}
		ca.Heal()
		cb.Heal()
		time.Sleep(2 * Beat)
		if len(a.Members()) != 2 || len(b.Members()) != 2 || !a.Valid() || !b.Valid() {
			t.Errorf("they do not come back: %+v", a.Members())
		}
		take(t, b, "git").Release()
	})
}

// A connection that is being made again is waited for, and one that is not made for long
// is not.
func TestTakeWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		cable := m.Connect()
		a := join(t, cable, "a")
		defer a.Close()
		time.Sleep(5 * Beat)
		cable.Cut()
		time.Sleep(2 * Validity)
		if !a.Degraded() {
			t.Error("it is not degraded")
		}
		time.AfterFunc(2*time.Second, cable.Heal)
		take(t, a, "git").Release()
		cable.Cut()
		time.Sleep(2 * Validity)
		began := time.Now()
		if _, err := a.Take(t.Context(), "git"); !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < Reconnect || took > Reconnect+Beat {
			t.Errorf("it was waited for %v", took)
		}
		cable.Heal()
	})
}

// One of several may be away, as it takes two to declare another dead. Of two, the one
// that died might as well be where the store is.
func TestADeathWhileTheStoreIsAway(t *testing.T) {
	for _, others := range []int{1, 2, 3} {
		synctest.Test(t, func(t *testing.T) {
			m := memkv.New()
			var g group
			var cables []*memkv.Connection
			var all []*Replica
			for i := range 1 + others {
				cables = append(cables, m.Connect())
				all = append(all, g.join(t, cables[i], string(rune('a'+i))))
			}
			dead, a, b := all[0], all[1], all[others]
			l := take(t, a, "git")
			time.Sleep(5 * Beat)
			for _, cable := range cables {
				cable.Cut()
			}
			dead.stop()
			g.reach("a", false)
			cut := time.Now()
			select {
			case <-l.Lost():
				if ran := time.Since(cut); others > 1 || ran > Validity {
					t.Errorf("of %d others one died: it ran for %v", others, ran)
				}
			case <-time.After(9 * time.Second):
				if others == 1 {
					t.Error("it goes on, though the other may be where the store is")
				}
			}
			l.Release()
			for _, cable := range cables {
				cable.Heal()
			}
			time.Sleep(3 * Beat)
			if !a.Valid() || !b.Valid() {
				t.Errorf("valid: %t, %t", a.Valid(), b.Valid())
			}
			take(t, a, "git").Release()
			time.Sleep(2 * TTL)
			if len(a.Members()) != others {
				t.Errorf("members: %+v", a.Members())
			}
			for _, r := range all[1:] {
				r.Close()
			}
		})
	}
}

// Whoever has asked may delete the record at that revision at any time. At a later one it
// is promised again.
func TestWhoAgreesPromisesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		ca, cb := m.Connect(), m.Connect()
		a, b := join(t, ca, "a"), join(t, cb, "b")
		defer a.Close()
		defer b.Close()
		time.Sleep(5 * Beat)
		ca.Cut()
		cb.Cut() // so that it does not delete the record itself
		b.mu.Lock()
		dead := Question{ID: a.ID(), Revision: b.view.members[a.ID()].revision}
		b.mu.Unlock()
		alive := Question{ID: a.ID()}
		for i, step := range []struct {
			after time.Duration
			q     Question
			yes   bool
		}{
			{0, dead, false}, // it was heard of just now
			{TTL, alive, true},
			{0, dead, false}, // promised
			{TTL, Question{a.ID(), dead.Revision - 1}, false},
			{0, Question{a.ID(), dead.Revision + 1}, false},
			{0, alive, true},
			{TTL, dead, true},
			{0, alive, false},
			{TTL, alive, false},
			{0, dead, true},
			{0, Question{ID: "other"}, false},
		} {
			time.Sleep(step.after)
			if err := b.Answer(step.q); (err == nil) != step.yes {
				t.Errorf("step %d: %+v: %v", i, step.q, err)
			}
		}
		ca.Heal()
		cb.Heal()
		time.Sleep(3 * Beat)
		if err := b.Answer(alive); err != nil {
			t.Error(err)
		}
	})
}

// The two that died might be cut off together, and promise each other what they do.
func TestTheLastOfThreeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		a, b, c := g.join(t, m.Connect(), "a"), g.join(t, m.Connect(), "b"), g.join(t, m.Connect(), "c")
		defer c.Close()
		take(t, a, "git")
		time.Sleep(5 * Beat)
		a.stop()
		b.stop()
		g.reach("a", false)
		g.reach("b", false)
		died := time.Now()
		for {
			l, err := c.Take(t.Context(), "git")
			if err == nil {
				l.Release()
				break
			}
			time.Sleep(tick)
		}
		if took := time.Since(died); took < Patience || took > Patience+TTL+2*Beat {
			t.Errorf("it was taken after %v", took)
		}
	})
}

func TestANewcomerWaitsForOneThatMayNotKnowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		cable := m.Connect()
		a := g.join(t, cable, "a")
		defer a.Close()
		l := take(t, a, "git")
		time.Sleep(5 * Beat)
		cable.Cut() // alone it needs no promises
		b := g.join(t, m.Connect(), "b")
		defer b.Close()
		notBefore(t, b, l)
	})
}

// The last beat of one that dies was sent before another came, and arrives afterwards.
func TestOneThatDiesAsAnotherComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		gate := make(chan struct{})
		var on atomic.Bool
		a := g.join(t, late{m.Connect(), &on, gate}, "a")
		b := g.join(t, m.Connect(), "b")
		defer b.Close()
		take(t, a, "git")
		time.Sleep(5*Beat + Beat/2)
		on.Store(true)
		time.Sleep(Beat)
		c := g.join(t, m.Connect(), "c")
		defer c.Close()
		time.Sleep(tick)
		on.Store(false)
		a.cancel() // nothing is sent after what is under way
		close(gate)
		a.stop()
		g.reach("a", false)
		if m, _ := c.Member(a.ID()); len(m.electors()) != 1 {
			t.Fatalf("it knows %q", m.Knows)
		}
		died := time.Now()
		if l, err := c.Take(t.Context(), "git"); err == nil {
			l.Release()
		} else if _, held := errors.AsType[*HeldError](err); !held {
			t.Error(err)
		} else {
			time.Sleep(Validity)
			take(t, c, "git").Release()
		}
		if took := time.Since(died); took > 6*time.Second {
			t.Errorf("it was taken after %v", took)
		}
	})
}

// A store whose changes arrive when a gate opens, though nobody waits for them any more.
type late struct {
	*memkv.Connection
	on   *atomic.Bool
	gate chan struct{}
}

func (s late) Bucket(ctx context.Context, name string) (kv.Bucket, error) {
	b, err := s.Connection.Bucket(ctx, name)
	return lateBucket{b, s}, err
}

type lateBucket struct {
	kv.Bucket
	late
}

func (b lateBucket) Update(ctx context.Context, key string, value []byte, at uint64) (uint64, error) {
	if b.on.Load() {
		<-b.gate
		ctx = context.Background()
	}
	return b.Bucket.Update(ctx, key, value, at)
}

// notBefore takes a lease that another replica has, and checks that it gets it only when
// what that one did has long ended.
func notBefore(t *testing.T, r *Replica, held *Lease) {
	t.Helper()
	taken := make(chan time.Time, 1)
	go func() {
		for {
			l, err := r.Take(t.Context(), "git")
			if err == nil {
				l.Release()
				break
			} else if _, ok := errors.AsType[*HeldError](err); !ok {
				t.Error(err)
				break
			}
			time.Sleep(tick)
		}
		taken <- time.Now()
	}()
	<-held.Lost()
	lost := time.Now()
	if after := (<-taken).Sub(lost); after < settled-Beat/2 {
		t.Errorf("it was taken %v after it was lost", after)
	}
	held.Release()
}

// A store whose answers are lost: what is asked is done.
type unanswered struct {
	*memkv.Connection
	on *atomic.Bool
}

func (s unanswered) Bucket(ctx context.Context, name string) (kv.Bucket, error) {
	b, err := s.Connection.Bucket(ctx, name)
	return unansweredBucket{b, s.on}, err
}

type unansweredBucket struct {
	kv.Bucket
	on *atomic.Bool
}

func (b unansweredBucket) Update(ctx context.Context, key string, value []byte, at uint64) (uint64, error) {
	revision, err := b.Bucket.Update(ctx, key, value, at)
	if b.on.Load() {
		<-ctx.Done()
		return 0, kv.ErrUnavailable
	}
	return revision, err
}

func (b unansweredBucket) Get(ctx context.Context, key string) (kv.Entry, error) {
	if b.on.Load() {
		<-ctx.Done()
		return kv.Entry{}, kv.ErrUnavailable
	}
	return b.Bucket.Get(ctx, key)
}

func TestABeatThatWasNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		var on atomic.Bool
		a := g.join(t, unanswered{m.Connect(), &on}, "a")
		defer a.Close()
		b := g.join(t, m.Connect(), "b")
		defer b.Close()
		l := take(t, a, "git")
		time.Sleep(5*Beat + Beat/2)
		on.Store(true)
		time.Sleep(3 * Validity)
		on.Store(false)
		time.Sleep(5 * Beat)
		if m, _ := b.Member(a.ID()); isClosed(l.Lost()) || m.Epoch != 1 {
			t.Errorf("lost: %t, epoch %d", isClosed(l.Lost()), m.Epoch)
		}
		l.Release()
	})
}

// The beat that tells that a knows b arrives, but a is not told. From then on b goes by
// that beat, so a must not go by what it was allowed when it was alone.
func TestOneThatWasAloneAndIsCutOffWhenAnotherComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memkv.New()
		var g group
		var on atomic.Bool
		cable := m.Connect()
		a := g.join(t, unanswered{cable, &on}, "a")
		defer a.Close()
		l := take(t, a, "git")
		time.Sleep(5*Beat + Beat/2)
		on.Store(true)
		b := g.join(t, m.Connect(), "b")
		defer b.Close()
		g.reach("a", false)
		synctest.Wait()
		time.Sleep(tick)
		cable.Cut()
		notBefore(t, b, l)
	})
}
