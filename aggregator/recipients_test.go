package aggregator

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/transports/host"
)

// enter is join for one of many hosts, in a session about one server, or all if only is "".
func enter(agg *Aggregator, user string, only string) (session, *listener) {
	sees := &listener{}
	s := agg.openSession(Identity{User: user, Shared: true, Persistent: true, Server: only})
	s.Recipient.Initialize()
	s.Join(sees)
	return s, sees
}

// number returns the number in a session's ID.
func number(s session) (n int) {
	fmt.Sscanf(s.ID, "session-%d", &n)
	return n
}

// crowd opens n sessions that hear nothing: they subscribe to other resources, and their
// users have no call in flight.
func crowd(agg *Aggregator, n int) (all []session) {
	for i := range n {
		s, _ := enter(agg, fmt.Sprint(i%10), "")
		s.ask("error", 4)
		s.Recipient.SetSubscribed(fmt.Sprintf("x://%d", i), true)
		all = append(all, s)
	}
	return all
}

func (s session) ask(level string, severity int) {
	s.Recipient.SetLevel(notify.Level{Params: fmt.Appendf(nil, `{"level":%q}`, level), Severity: severity})
}

// calling returns a host with a call in flight, which hears the upstream's notifications.
func calling(agg *Aggregator) (p *fleet.Endpoint, c *forward.Call, sees *listener) {
	s, sees := enter(agg, "ann", "")
	s.Recipient.SetSubscribed("x://mine", true)
	p = agg.fleet.Of(agg.set.Get("up"))
	c = callOf(&forward.Call{Env: &agg.calls, Server: p}, s.Session, &host.Request{Method: "tools/call", Peer: sees})
	p.Calls.Add(&c.Flight)
	return p, c, sees
}

// A notification does not touch the sessions that do not hear it: their hosts are locked
// meanwhile.
func TestWhoDoesNotHearIsNotTouched(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	others := crowd(agg, 1000)
	p, c, sees := calling(agg)
	heard := make(chan []string, 1)
	for _, s := range others {
		s.Host.(*listener).mu.Lock()
	}
	go func() {
		p.Notify("notifications/message", []byte(`{"level":"error","data":1}`))
		p.Notify("notifications/x-vendor", []byte(`{}`))
		p.Notify("notifications/resources/updated", []byte(`{"uri":"x://mine/part"}`))
		p.Notify("notifications/resources/updated", []byte(`{"uri":"y://"}`))
		c.Notify("notifications/message", []byte(`{"level":"error","data":2}`))
		heard <- sees.take()
	}()
	var got []string
	select {
	case got = <-heard:
	case <-time.After(20 * time.Second):
		t.Error("it waits for a session that does not hear it")
	}
	for _, s := range others {
		s.Host.(*listener).mu.Unlock()
	}
	want := []string{
		`notifications/message {"level":"error","data":1,"logger":"up"}`, `notifications/x-vendor {}`,
		`notifications/resources/updated {"uri":"x://mine/part"}`, `notifications/message {"level":"error","data":2,"logger":"up"}`,
	}
	if got != nil && !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The cost of a notification is the same with 5,000 sessions that do not hear it as with ten,
// also while sessions come and go.
func TestWhatAnUpstreamSaysCostsNoMoreBesideManySessions(t *testing.T) {
	t.Parallel()
	for method, params := range map[string]string{"message": `{"level":"error","data":1}`, "resources/updated": `{"uri":"x://mine/part"}`, "x-vendor": `{}`} {
		cost := func(others int) (least time.Duration) {
			agg := newQuiet(t, Options{})
			crowd(agg, others)
			p, _, sees := calling(agg)
			least = time.Hour
			for range 200 {
				s, _ := enter(agg, "0", "")
				s.end()
				began := time.Now()
				p.Notify("notifications/"+method, []byte(params))
				least = min(least, time.Since(began))
				if got := sees.take(); len(got) != 1 {
					t.Fatalf("%s: got %q", method, got)
				}
			}
			return least
		}
		if few, many := cost(10), cost(5000); many > 8*few {
			t.Errorf("%s: %v beside ten sessions, %v beside 5,000", method, few, many)
		}
	}
}

// The recipients that are kept are those that a search of all sessions finds, while sessions
// come, go, subscribe or set a level.
func TestTheAudienceIsWhatAWalkFinds(t *testing.T) {
	t.Parallel()
	agg := newQuiet(t, Options{})
	p := agg.fleet.Of(agg.set.Get("up"))
	random := rand.New(rand.NewSource(1))
	here, subscribed := map[session]bool{}, map[session]map[string]bool{}
	uri := func() string { return []string{"x://a", "x://a/", "x://a/b", "x://ab", "y://a"}[random.Intn(5)] }
	for range 2000 {
		one := func() session {
			all := slices.SortedFunc(maps.Keys(here), func(a, b session) int { return cmp.Compare(number(a), number(b)) })
			return all[random.Intn(len(all))]
		}
		switch n := random.Intn(6); {
		case n == 0 || len(here) == 0:
			s, _ := enter(agg, fmt.Sprint(random.Intn(2)), []string{"", "up", "other"}[random.Intn(3)])
			here[s], subscribed[s] = true, map[string]bool{}
		case n == 1:
			s := one()
			delete(here, s)
			s.end()
		case n == 2:
			severity := random.Intn(len(notify.Levels))
			one().ask(notify.Levels[severity], severity)
		default:
			s, uri := one(), uri()
			s.Recipient.SetSubscribed(uri, n > 3)
			if subscribed[s][uri] = true; n <= 3 {
				delete(subscribed[s], uri)
			}
		}
		verbose, users, changed := -1, map[string]bool{}, uri()+[]string{"", "/c", "?q"}[random.Intn(3)]
		var hear []*sessions.Session
		for s := range here {
			if !s.agg.fleet.Sees(s.Session, p.Upstream) {
				continue
			}
			if users[s.User] = true; s.Recipient.Level().IsSet() && (verbose < 0 || s.Recipient.Level().Severity < verbose) {
				verbose = s.Recipient.Level().Severity
			}
			if (notify.Stream{URIs: subscribed[s]}).Covers(changed) {
				hear = append(hear, s.Session)
			}
		}
		if got := p.Source().Verbose(); got.IsSet() != (verbose >= 0) || verbose >= 0 && (got.Severity != verbose || string(got.Params) != fmt.Sprintf(`{"level":%q}`, notify.Levels[verbose])) {
			t.Fatalf("the most verbose level is %+v, want %d", got, verbose)
		}
		if got := p.Source().Subscribers(changed); !slices.Equal(got, slices.SortedFunc(slices.Values(hear), func(a, b *sessions.Session) int { return cmp.Compare(number(agg.of(a)), number(agg.of(b))) })) {
			t.Fatalf("%d sessions hear of %s, want %d", len(got), changed, len(hear))
		}
		told := 0 // of notifications that belong to no call: none if users differ
		if len(users) <= 1 {
			told = len(p.Source().Sessions())
		}
		if got := p.Source().Unsolicited(nil, true); len(got) != told {
			t.Fatalf("%d sessions of %d users are told, want %d", len(got), len(users), told)
		}
		if got := p.Source().Sessions(); len(got) != len(slices.DeleteFunc(slices.Collect(maps.Keys(here)), func(s session) bool { return !s.agg.fleet.Sees(s.Session, p.Upstream) })) {
			t.Fatalf("%d sessions see the upstream", len(got))
		}
	}
}

// The cost of a log message and an update with sessions that do not hear them.
func BenchmarkAudience(b *testing.B) {
	for _, n := range []int{0, 100, 1000, 10_000} {
		agg := newQuiet(b, Options{})
		crowd(agg, n)
		p, _, sees := calling(agg)
		for method, params := range map[string]string{"message": `{"level":"error","data":1}`, "resources/updated": `{"uri":"x://mine"}`} {
			b.Run(fmt.Sprintf("%s/sessions=%d", method, n), func(b *testing.B) {
				for b.Loop() {
					p.Notify("notifications/"+method, []byte(params))
					sees.take()
				}
			})
		}
		b.Run(fmt.Sprintf("message while sessions come and go/sessions=%d", n), func(b *testing.B) {
			for b.Loop() {
				s, _ := enter(agg, "0", "")
				p.Notify("notifications/message", []byte(`{"level":"error","data":1}`))
				sees.take()
				s.end()
			}
		})
	}
}
