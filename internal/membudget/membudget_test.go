package membudget

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
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
		b.Open("ann", nil).Reserve(13) // bodies, which cannot be shed
		b.Open("ann", nil).Reserve(12)
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
		if got := b.Total(); got != 10+25+9+10 {
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

// Bytes of nobody count for messages that exist, too: the rest of them is shed until all fit.
func TestMessagesFitBesideBytesOfNobody(t *testing.T) {
	others := int64(90)
	b := New(100, func() int64 { return others })
	for i, test := range []struct {
		size  int
		sheds int
		total int64
	}{
		{10, 0, 100}, // fills it
		{5, 1, 95},   // ann's 10 bytes are the most
		{6, 1, 95},   // more than all that is left for bob
		{5, 1, 95},   // bob has two, and leaves less than that
	} {
		who := []string{"ann", "bob"}[i%2]
		if got := len(b.Open(who, func() {}).Set(test.size)); got != test.sheds || b.Total() != test.total {
			t.Errorf("message %d of %d bytes: %d were shed for it, and %d bytes are held, want %d and %d", i, test.size, got, b.Total(), test.sheds, test.total)
		}
	}
}

// Nothing is shed for a reservation that is refused all the same, and what stays is shed in the
// order of its age as before.
func TestNothingIsShedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		others := int64(0)
		b := New(100, func() int64 { return others })
		var gone []int
		for i := range 5 {
			b.Open("bob", func() { gone = append(gone, i) }).Reserve(10)
			time.Sleep(time.Second)
		}
		ann, carol := b.Open("ann", nil), b.Open("carol", nil)
		ann.Reserve(10)
		others = 10
		for _, test := range []struct {
			of   *Reservation
			n    int64
			may  bool
			gone string
		}{
			{ann, 35, false, "[]"},   // with the 10 bytes it is more than the rest
			{carol, 48, false, "[]"}, // bob would have less than that before there is room
			{carol, 35, true, "[0]"},
		} {
			if may := test.of.Reserve(test.n); may != test.may || fmt.Sprint(gone) != test.gone {
				t.Errorf("%d bytes: %t, and bob's %v were shed, want %t and %s", test.n, may, gone, test.may, test.gone)
			}
		}
		if got := b.Total(); got != 95 {
			t.Errorf("%d bytes are held, want 95", got)
		}
	})
}

// Limits are met exactly: nothing is refused or shed that fits to the byte.
func TestLimitsAreExact(t *testing.T) {
	for name, test := range map[string]func(b *Budget, shed func(), others *int64) bool{
		"the rest beside a message that is larger": func(b *Budget, shed func(), _ *int64) bool {
			b.Open("bob", shed).Set(60)
			return b.Open("ann", nil).Reserve(40)
		},
		"as much as is left for others": func(b *Budget, _ func(), _ *int64) bool {
			r := b.Open("ann", nil)
			return r.Reserve(20) && r.Reserve(60) && !r.Reserve(1)
		},
		"the same size when there is no room": func(b *Budget, shed func(), others *int64) bool {
			r, message := b.Open("ann", nil), b.Open("bob", shed)
			message.Set(10)
			ok := r.Reserve(50)
			*others = 45
			return ok && r.Resize(50) && len(message.Set(10)) == 0
		},
		"half of all in messages": func(b *Budget, shed func(), _ *int64) bool {
			first, second := b.Open("ann", shed).Set(25), b.Open("ann", shed).Set(25)
			return len(first)+len(second) == 0
		},
		"as much in messages as in what stays": func(b *Budget, shed func(), _ *int64) bool {
			return b.Open("ann", nil).Reserve(26) && len(b.Open("ann", shed).Set(10)) == 0 && len(b.Open("ann", shed).Set(16)) == 0
		},
		"as much as the largest account can make room for": func(b *Budget, shed func(), _ *int64) bool {
			ann := b.Open("ann", shed)
			b.Open("ann", nil).Reserve(60)
			ann.Set(10)
			over := b.Open("bob", shed).Set(40)
			return len(over) == 1 && over[0] == ann
		},
		"nothing of what is not counted": func(*Budget, func(), *int64) bool {
			var r *Reservation
			r.Release(1)
			return r.Reserve(1) && r.Resize(1) && r.Set(1) == nil && r.Sibling(nil) == nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			others, shed := int64(0), 0
			if !test(New(100, func() int64 { return others }), func() { shed++ }, &others) || shed > 0 {
				t.Errorf("it is refused, or %d were shed", shed)
			}
		})
	}
}

// However accounts reserve, resize and release: the sums are right, no more is held than may be
// unless nothing can be shed, and what was shed is charged no more.
func TestSumsAreRight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		others := int64(0)
		b := New(100, func() int64 { return others })
		var all []*Reservation
		shed := map[*Reservation]bool{}
		for range 8 {
			var r *Reservation
			drop := func() {
				if shed[r] {
					t.Fatal("one is shed twice")
				}
				shed[r] = true
			}
			if rapid.IntRange(0, 3).Draw(t, "stays") == 0 {
				drop = nil
			}
			r = b.Open(rapid.SampledFrom([]string{"ann", "bob", "carol"}).Draw(t, "who"), drop)
			all = append(all, r)
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			r, n := rapid.SampledFrom(all).Draw(t, "of"), rapid.Int64Range(0, 70).Draw(t, "n")
			before := r.bytes
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if r.Reserve(n); b.Total() > 100 && r.bytes > before {
					t.Fatalf("%d bytes were reserved, and %d are held", n, b.Total())
				}
			case 1:
				n = min(n, before)
				if r.Release(n); r.bytes != before-n {
					t.Fatalf("%d of %d bytes were released, and %d are left", n, before, r.bytes)
				}
			case 2:
				if ok := r.Resize(n); ok != (r.bytes == n) && !shed[r] || !ok && n <= before {
					t.Fatalf("%d bytes were resized to %d: %t, and there are %d", before, n, ok, r.bytes)
				}
			case 3:
				others = n
			case 4:
				Shed(r.Set(int(n)))
				if worst, _ := b.largestLocked(1); r.bytes > before && b.Total() > 100 && worst != nil {
					t.Fatalf("%d bytes are held, and there are messages to shed", b.Total())
				}
			}
			sums, sheddable, total := map[string]int64{}, map[string]int64{}, int64(0)
			for _, r := range all {
				sums[r.who], total = sums[r.who]+r.bytes, total+r.bytes
				if r.shed != nil {
					sheddable[r.who] += r.bytes
				}
				if shed[r] && r.bytes != 0 {
					t.Fatal("what was shed is charged")
				}
			}
			for who, a := range b.of {
				if a.bytes != sums[who] || a.sheddable != sheddable[who] {
					t.Fatalf("%s has %d bytes, of them %d to shed, want %d and %d", who, a.bytes, a.sheddable, sums[who], sheddable[who])
				}
			}
			if b.Total() != total+others {
				t.Fatalf("%d bytes are held, want %d", b.Total(), total+others)
			}
		}
	})
}

// An answer that was accepted while it was read is not shed when it has become a message, nor are those
// before it, whatever was released meanwhile.
func TestAcceptedAnswersAreNotShed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 1_000_000
		b := New(limit, nil)
		if kept := rapid.Int64Range(0, 1000).Draw(t, "kept"); !b.Open("ann", nil).Reserve(kept) {
			t.Fatal("what a session keeps is refused")
		}
		var reading, messages []*Reservation
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				if r := b.Open("ann", nil); r.Resize(rapid.Int64Range(1, limit).Draw(t, "n")) {
					reading = append(reading, r)
				}
			case 2:
				if len(reading) > 0 {
					r := reading[0]
					n := r.bytes
					r.Set(0)
					message := b.Open("ann", func() {})
					if over := message.Set(int(n)); len(over) > 0 {
						t.Fatalf("%d of %d bytes are held, and one of %d is shed", b.Total(), limit, n)
					}
					reading, messages = reading[1:], append(messages, message)
				}
			case 3:
				if len(messages) > 0 {
					messages[0].Set(0)
					messages = messages[1:]
				}
			}
		}
	})
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
