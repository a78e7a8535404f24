package script

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
		if len(late) > 0 {
			t.Errorf("it was late after %v", late)
		}
		third()
		time.Sleep(time.Minute)
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
