package held

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A holder that takes what it can leaves as much for others.
func TestABodyMayHaveWhatItLeavesForOthers(t *testing.T) {
	b := New(100)
	greedy := 0
	for ; b.Hold("ann", nil).Reserve(10); greedy++ {
	}
	if greedy != 5 {
		t.Errorf("ann has %d of 10 parts, want 5", greedy)
	}
	if bob := b.Hold("bob", nil); !bob.Reserve(50) {
		t.Error("bob does not get the rest at once")
	} else if bob.Reserve(1) {
		t.Error("there is more than all")
	} else {
		bob.Set(0)
	}
	if got := b.Total(); got != 50 {
		t.Errorf("%d bytes are held, want 50", got)
	}
}

// What was unread for the longest goes first, and nobody's but that of the holder with
// too much.
func TestWhatIsUnreadTheLongestIsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100)
		var gone []string
		unread := func(who, name string, n int) *Hold {
			h := b.Hold(who, func() { gone = append(gone, name) })
			Shed(h.Set(n))
			time.Sleep(time.Second)
			return h
		}
		unread("bob", "bob's", 10)
		b.Hold("ann", nil).Reserve(20) // a body, which cannot be shed
		first := unread("ann", "first", 10)
		unread("ann", "second", 10)
		if gone != nil {
			t.Fatalf("%v were shed", gone)
		}
		first.Set(9) // it is read on
		unread("ann", "third", 10)
		if want := "[second]"; fmt.Sprint(gone) != want {
			t.Errorf("shed are %v, want %s", gone, want)
		}
		unread("carol", "carol's", 90) // more than all together
		if want := "[second carol's]"; fmt.Sprint(gone) != want {
			t.Errorf("shed are %v, want %s", gone, want)
		}
		if got := b.Total(); got != 10+20+9+10 {
			t.Errorf("%d bytes are held", got)
		}
	})
}
