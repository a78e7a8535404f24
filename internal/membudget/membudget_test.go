package membudget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An account may use as much as it leaves free for others.
func TestAnAccountLeavesAsMuchFree(t *testing.T) {
	b := New(100, nil)
	greedy := 0
	for ; b.Open("ann", nil).Reserve(10); greedy++ {
	}
	if greedy != 5 {
		t.Errorf("ann has %d of 10 parts, want 5", greedy)
	}
	if bob := b.Open("bob", nil); !bob.Reserve(50) {
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

// A small message is not shed because requests and answers fill the share of its account. Nothing
// is shed if that does not make enough room.
func TestSmallMessagesAreNotShed(t *testing.T) {
	b := New(100, nil)
	shed := 0
	if !b.Open("ann", nil).Reserve(50) {
		t.Fatal("ann does not get half of all")
	}
	if message := b.Open("ann", func() { shed++ }); len(message.Set(2)) > 0 {
		t.Error("a message of 2 bytes is shed for 50 that stay")
	}
	if b.Open("bob", nil).Reserve(60) || shed > 0 {
		t.Errorf("%d messages were shed for what does not fit", shed)
	}
}

// The message that was unread for the longest is shed first, and only of the account that exceeds
// its share.
func TestWhatIsUnreadTheLongestIsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(100, nil)
		var gone []string
		unread := func(who, name string, n int) *Reservation {
			r := b.Open(who, func() { gone = append(gone, name) })
			Shed(r.Set(n))
			time.Sleep(time.Second)
			return r
		}
		unread("bob", "bob's", 10)
		b.Open("ann", nil).Reserve(20) // a body, which cannot be shed
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

// Bytes without a known account count against the limit, and the largest account makes room.
func TestBytesOfNobodyTakeRoom(t *testing.T) {
	others := int64(60)
	b := New(100, func() int64 { return others })
	shed := 0
	ann, bob, carol := b.Open("ann", func() { shed++ }), b.Open("bob", nil), b.Open("carol", nil)
	if ann.Reserve(41) || !ann.Reserve(30) || !bob.Reserve(5) || shed > 0 {
		t.Error("beside 60 of 100 bytes there is not room for 40")
	}
	if carol.Reserve(30) || shed > 0 {
		t.Error("ann has to make room for an account that wants as much")
	}
	if !carol.Reserve(20) || shed != 1 {
		t.Errorf("ann, who has the most, was shed %d times", shed)
	}
	if got := b.Total(); got != 60+5+20 {
		t.Errorf("%d bytes are held", got)
	}
	others = 90
	if b.Open("dave", nil).Reserve(1) || shed != 1 {
		t.Error("there is room although no account can make it")
	}
}

// An answer that is being read grows within its account's share, and shrinks at any time.
func TestResizeStaysWithinTheShare(t *testing.T) {
	b := New(100, nil)
	first, second := b.Open("ann", nil), b.Open("ann", nil)
	for _, step := range []struct {
		reservation *Reservation
		size        int64
		may         bool
	}{{first, 30, true}, {second, 20, true}, {second, 50, false}, {first, 31, false}, {first, 10, true}, {second, 40, true}, {first, 0, true}, {second, 100, false}} {
		if got := step.reservation.Resize(step.size); got != step.may {
			t.Errorf("%d bytes: %v, want %v", step.size, got, step.may)
		}
	}
	if got := b.Total(); got != 40 {
		t.Errorf("%d bytes are held, want 40", got)
	}
}

// The bytes without a known account count for messages as they do for requests.
func TestOthersCountForMessages(t *testing.T) {
	for _, others := range []int64{0, 40, 90, 100} {
		b := New(100, func() int64 { return others })
		shed := 0
		for _, who := range []string{"ann", "bob", "cid"} {
			for _, n := range []int{30, 20} {
				Shed(b.Open(who, func() { shed++ }).Set(n))
			}
		}
		if got := b.Total(); got > max(100, others) {
			t.Errorf("with %d others, %d of 100 bytes are held, %d messages shed", others, got, shed)
		}
	}
}
