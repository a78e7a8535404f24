// Package membudget bounds the memory that a run uses for its hosts: in total, and for each.
package membudget

import (
	"cmp"
	"sync"
	"time"
)

// A Budget accounts for the bytes that are held for all hosts: requests that are being received
// or unanswered, answers that are being read, calls that wait for input, messages that wait to
// be read. An account may use as much as it leaves free for others.
type Budget struct {
	max    int64
	others func() int64 // bytes without a known account

	mu    sync.Mutex
	total int64
	of    map[string]*account
}

// An account is the share of one user, or address, in a Budget.
type account struct {
	bytes        int64
	sheddable    int64                     // of them
	reservations map[*Reservation]struct{} // those with bytes
}

// A Reservation is an amount of bytes in a Budget. The methods of a nil Reservation do nothing.
type Reservation struct {
	in   *Budget
	who  string
	shed func()

	// Guarded by in.mu.
	bytes    int64
	since    time.Time // when it was last empty, or shrank
	shedding bool      // it no longer counts
}

// New returns a budget of so many bytes; 0 is 512 MB. others returns the number of bytes without a
// known account, for which nothing is shed; it may be nil.
func New(limit int64, others func() int64) *Budget {
	if others == nil {
		others = func() int64 { return 0 }
	}
	return &Budget{max: cmp.Or(limit, 512<<20), others: others, of: map[string]*account{}}
}

// Max returns the limit for all.
func (b *Budget) Max() int64 { return b.max }

// Total returns how many bytes are held, including those without a known account.
func (b *Budget) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total + b.others()
}

// Open returns an empty Reservation of an account. shed releases its bytes soon, without blocking; nil
// means that they cannot be released early.
func (b *Budget) Open(who string, shed func()) *Reservation {
	return &Reservation{in: b, who: who, shed: shed}
}

// Sibling returns a Reservation of the same account, nil for a nil one.
func (r *Reservation) Sibling(shed func()) *Reservation {
	if r == nil {
		return nil
	}
	return r.in.Open(r.who, shed)
}

// Reserve adds n bytes, unless that exceeds the account's share. Larger accounts make room.
func (r *Reservation) Reserve(n int64) bool {
	if r == nil {
		return true
	}
	over, ok := r.reserve(n)
	Shed(over)
	return ok
}

func (r *Reservation) reserve(n int64) (over []*Reservation, ok bool) {
	b := r.in
	b.mu.Lock()
	defer b.mu.Unlock()
	free, own := b.freeLocked(), int64(0)
	if a := b.of[r.who]; a != nil {
		own = a.bytes
	}
	var shed []Reservation // over, before
	for n > free {
		worst, has := b.largestLocked(n - free)
		if has <= own+n {
			break
		}
		free += worst.bytes
		shed, over = append(shed, *worst), append(over, worst)
		worst.changeLocked(0)
		worst.shedding = true
	}
	if own+n > free { // nothing is shed in vain
		for i, worst := range over {
			worst.shedding = false
			worst.changeLocked(shed[i].bytes)
			worst.since = shed[i].since
		}
		return nil, false
	}
	r.changeLocked(r.bytes + n)
	return over, true
}

// freeLocked returns how many bytes may still be held, less than 0 if there are too many.
func (b *Budget) freeLocked() int64 { return b.max - b.total - b.others() }

// Release gives back n of the bytes.
func (r *Reservation) Release(n int64) {
	if r == nil || n == 0 {
		return
	}
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.changeLocked(r.bytes - n)
}

// Resize changes the reservation to n bytes, unless the account may not have them. A reservation is
// resized by one goroutine at a time.
func (r *Reservation) Resize(n int64) bool {
	if r == nil {
		return true
	}
	r.in.mu.Lock()
	more := n - r.bytes
	r.changeLocked(min(n, r.bytes))
	r.in.mu.Unlock()
	return more <= 0 || r.Reserve(more)
}

// Set sets the number of bytes of a message that already exists. It returns the reservations that
// must be shed to stay within the limits.
func (r *Reservation) Set(n int) (over []*Reservation) {
	if r == nil {
		return nil
	}
	b := r.in
	b.mu.Lock()
	defer b.mu.Unlock()
	grown := int64(n) > r.bytes
	r.changeLocked(int64(n))
	for grown && !r.shedding {
		worst := b.worstLocked(r.who)
		if worst == nil {
			break
		}
		worst.changeLocked(0)
		worst.shedding = true
		over = append(over, worst)
	}
	return over
}

// Shed sheds the reservations returned by Set.
func Shed(over []*Reservation) {
	for _, r := range over {
		r.shed()
	}
}

func (r *Reservation) changeLocked(n int64) {
	if r.shedding || n == r.bytes {
		return
	}
	b := r.in
	a := b.of[r.who]
	if a == nil {
		a = &account{}
		b.of[r.who] = a
	}
	a.note(r, n)
	if r.shed != nil {
		a.sheddable += n - r.bytes
	}
	b.total += n - r.bytes
	a.bytes += n - r.bytes
	r.bytes = n
	if a.bytes == 0 {
		delete(b.of, r.who)
	}
}

// note records that a reservation changes to n bytes.
func (a *account) note(r *Reservation, n int64) {
	if r.bytes == 0 || n < r.bytes {
		r.since = time.Now()
	}
	if n == 0 {
		delete(a.reservations, r)
		return
	}
	if a.reservations == nil {
		a.reservations = map[*Reservation]struct{}{}
	}
	a.reservations[r] = struct{}{}
}

// worstLocked returns the reservation to shed, nil if none: if the total is too large, one of the largest
// account; if an account exceeds its share, one of that account, if its sheddable bytes are the
// cause. A small message beside requests and answers of that size makes no difference, nor does the
// last that Reserve accepted, which is now a message: it may exceed the share by its size.
func (b *Budget) worstLocked(who string) *Reservation {
	free, a := b.freeLocked(), b.of[who]
	if free >= 0 {
		if a == nil || 2*a.sheddable <= a.bytes || a.bytes <= free+a.largest() {
			return nil
		}
		return a.worst()
	}
	worst, _ := b.largestLocked(-free)
	if worst == nil {
		worst, _ = b.largestLocked(1)
	}
	return worst
}

// largestLocked finds the largest account that can shed so much. It returns the reservation to shed
// first, nil without such an account, and how much that account has.
func (b *Budget) largestLocked(need int64) (worst *Reservation, largest int64) {
	for _, a := range b.of {
		if a.bytes > largest && a.sheddable >= need {
			if r := a.worst(); r != nil {
				worst, largest = r, a.bytes
			}
		}
	}
	return worst, largest
}

// largest returns the bytes of the largest reservation.
func (a *account) largest() (most int64) {
	for r := range a.reservations {
		most = max(most, r.bytes)
	}
	return most
}

// worst returns the reservation with the most bytes for the longest time, of those that can be shed.
func (a *account) worst() (worst *Reservation) {
	var most float64
	for r := range a.reservations {
		if weight := float64(r.bytes) * (time.Since(r.since) + time.Millisecond).Seconds(); r.shed != nil && weight > most {
			worst, most = r, weight
		}
	}
	return worst
}
