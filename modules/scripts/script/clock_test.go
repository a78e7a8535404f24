package script

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynmcp/dynmcp/modules/scripts/engine"
)

// A clock runs for as long as it is not stopped, however often it is, and then is late once. The
// place of the script is given back while it is stopped.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, late := time.Now(), []time.Duration{}
		shares := &shares{}
		shares.change("ann", 1)
		c := newClock(10*time.Second, &place{in: shares, who: "ann"}, func() { late = append(late, time.Since(began)) })
		ctx := context.WithValue(t.Context(), clockKey{}, c)
		taken := func(want int) {
			t.Helper()
			if shares.taken != want {
				t.Errorf("after %v %d places are taken, want %d", time.Since(began), shares.taken, want)
			}
		}
		time.Sleep(4 * time.Second)
		taken(1)
		first := StopClock(ctx)
		taken(0)
		time.Sleep(time.Minute)
		second := StopClock(ctx)
		first()
		first()
		taken(0)
		time.Sleep(time.Minute)
		second()
		taken(1)
		time.Sleep(3 * time.Second)
		third := StopClock(ctx)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(late) > 0 {
			t.Errorf("it was late after %v", late)
		}
		third()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(late) != 1 || late[0] != 3*time.Minute+10*time.Second {
			t.Errorf("it was late after %v", late)
		}
	})
}

// A clock that has ended is never late, even if a person answers then.
func TestClockThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shares := &shares{}
		shares.change("ann", 1)
		p := &place{in: shares, who: "ann"}
		c := newClock(time.Second, p, func() { t.Error("it was late") })
		start := StopClock(context.WithValue(t.Context(), clockKey{}, c))
		c.end()
		p.end()
		start()
		StopClock(context.WithValue(t.Context(), clockKey{}, c))()
		time.Sleep(time.Minute)
		if shares.taken != 0 {
			t.Errorf("%d places are taken", shares.taken)
		}
		other := newClock(time.Second, p, func() { t.Error("it was late") })
		other.end()
		StopClock(context.WithValue(t.Context(), clockKey{}, other))
		StopClock(context.WithValue(t.Context(), clockKey{}, other))()
		time.Sleep(time.Minute)
		StopClock(t.Context())() // without a script
	})
}

// Who gives up waiting takes no place, even if it gets one at that moment.
func TestSharesThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shares{}
		for range maxScripts / 2 {
			if err := s.take(t.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 2)
		go func() { got <- s.take(ctx, "ann") }()
		synctest.Wait()
		cancel(gone)
		if err := <-got; err != gone {
			t.Errorf("got %v", err)
		}
		s.change("carol", maxScripts/2)
		go func() { got <- s.take(ctx, "ann") }()
		if err := <-got; err != gone || s.taken != maxScripts {
			t.Errorf("got %v, and %d places are taken", err, s.taken)
		}
		s.change("carol", -maxScripts/2)
		if err := s.take(ctx, "bob"); err != gone {
			t.Errorf("got %v", err)
		}
		if s.taken != maxScripts/2 || len(s.waiting) != 0 || s.of["ann"] != maxScripts/2 || len(s.of) != 1 {
			t.Errorf("%d places are taken, %v, %d wait", s.taken, s.of, len(s.waiting))
		}

		// Those who wait get the place of one that ends, the first of them that may have it.
		for _, who := range []string{"ann", "bob", "ann", "bob"} {
			go func() { _ = s.take(t.Context(), who) }()
			synctest.Wait()
		}
		if s.of["bob"] != 2 || s.of["ann"] != maxScripts/2 || len(s.waiting) != 2 {
			t.Errorf("got %v, %d wait", s.of, len(s.waiting))
		}
		s.change("ann", -1)
		s.change("ann", -1)
		s.change("ann", -1)
		synctest.Wait()
		if s.of["ann"] != maxScripts/2-1 || len(s.waiting) != 0 {
			t.Errorf("got %v, %d wait", s.of, len(s.waiting))
		}
	})
}

// A user gets the last place if it has none, and as many as are free.
func TestSharesAreAsManyAsAreFree(t *testing.T) {
	for _, tt := range []struct {
		others, own int
		may         bool
	}{{15, 0, true}, {16, 0, false}, {17, 0, false}, {13, 1, true}, {14, 1, false}, {0, 7, true}, {0, 8, false}, {8, 3, true}, {8, 4, false}} {
		s := &shares{}
		s.change("others", tt.others)
		s.change("ann", tt.own)
		w := &waiter{"ann", make(chan struct{})}
		s.waiting = append(s.waiting, w)
		s.grantLocked()
		select {
		case <-w.got:
			if !tt.may {
				t.Errorf("%+v: it got a place", tt)
			}
		default:
			if tt.may {
				t.Errorf("%+v: it got no place", tt)
			}
		}
	}
}

// The limits of a script hold even if the process that runs it breaks them.
func TestLimitsOfTheParent(t *testing.T) {
	r := &run{child: &child{}, script: Script{Run: engine.Run{Output: 10, Calls: 2, AtOnce: 9}}, answer: func(context.Context, Call) (json.RawMessage, *Failure) {
		return json.RawMessage(`{}`), nil
	}}
	for _, text := range []string{"01234", "567", "", "89ab", "cé"} {
		r.print(text)
	}
	if got := r.printed.String(); got != "0123456789" || r.result.Dropped != 5 {
		t.Errorf("printed %q, %d dropped", got, r.result.Dropped)
	}
	r.mu.Lock()
	r.over = true // there is no process to answer
	r.mu.Unlock()
	for id, want := range []bool{1: true, 2: true, 3: false} {
		if got := id == 0 || r.begin(t.Context(), Call{ID: id, Kind: engine.Tool, Name: "a/b", Args: json.RawMessage(`{}`)}); id > 0 && got != want {
			t.Errorf("call %d: got %v", id, got)
		}
	}
	r.working.Wait()
}

// Calls are named up to a limit, on one line.
func TestRanNamesCalls(t *testing.T) {
	var r Result
	for range 50 {
		r.Calls = append(r.Calls, CallRecord{Name: "a/b\nc", Outcome: engine.Ran, Error: "x\r\ny"})
	}
	got := r.Ran()
	if strings.ContainsAny(got, "\r\n") || !strings.HasPrefix(got, "50 calls ran: a/b c (done: x), a/b c") || strings.Contains(got, "more") {
		t.Errorf("got %.100s … %s", got, got[len(got)-50:])
	}
	r.Calls = append(r.Calls, r.Calls[0])
	if got := r.Ran(); !strings.HasSuffix(got, ", and 1 more") {
		t.Errorf("got … %s", got[len(got)-50:])
	}
}
