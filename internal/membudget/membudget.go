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
	reservations map[*Reservation]struct{} // those with bytes that can be shed
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
func (h *Reservation) Sibling(shed func()) *Reservation {
	if h == nil {
		return nil
	}
	return h.in.Open(h.who, shed)
}

// Reserve adds n bytes, unless that exceeds the account's share. Larger accounts make room.
func (h *Reservation) Reserve(n int64) bool {
	if h == nil {
		return true
	}
	over, ok := h.reserve(n)
	Shed(over)
	return ok
}

func (h *Reservation) reserve(n int64) (over []*Reservation, ok bool) {
	b := h.in
	b.mu.Lock()
	defer b.mu.Unlock()
	free, own := b.max-b.total-b.others(), int64(0)
	if a := b.of[h.who]; a != nil {
		own = a.bytes
	}
	for n > free {
		worst, has := b.largestLocked(n - free)
		if has <= own+n {
			return over, false
		}
		free += worst.bytes
		worst.changeLocked(0)
		worst.shedding = true
		over = append(over, worst)
	}
	if own > 0 && own+n > free {
		return over, false
	}
	h.changeLocked(h.bytes + n)
	return over, true
}

// Release gives back n of the bytes.
func (h *Reservation) Release(n int64) {
	if h == nil || n == 0 {
		return
	}
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	h.changeLocked(h.bytes - n)
}

// Resize changes the reservation to n bytes, unless the account may not have them. A reservation is
// resized by one goroutine at a time.
func (h *Reservation) Resize(n int64) bool {
	if h == nil {
		return true
	}
	h.in.mu.Lock()
	more := n - h.bytes
	if more <= 0 {
		h.changeLocked(n)
	}
	h.in.mu.Unlock()
	return more <= 0 || h.Reserve(more)
}

// Set sets the number of bytes of a message that already exists. It returns the reservations that
// must be shed to stay within the limits.
func (h *Reservation) Set(n int) (over []*Reservation) {
	if h == nil {
		return nil
	}
	b := h.in
	b.mu.Lock()
	defer b.mu.Unlock()
	grown := int64(n) > h.bytes
	h.changeLocked(int64(n))
	for grown && !h.shedding {
		worst := b.worstLocked(h.who)
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
	for _, h := range over {
		h.shed()
	}
}

func (h *Reservation) changeLocked(n int64) {
	if h.shedding || n == h.bytes {
		return
	}
	b := h.in
	a := b.of[h.who]
	if a == nil {
		a = &account{}
		b.of[h.who] = a
	}
	if h.shed != nil {
		a.note(h, n)
		a.sheddable += n - h.bytes
	}
	b.total += n - h.bytes
	a.bytes += n - h.bytes
	h.bytes = n
	if a.bytes == 0 {
		delete(b.of, h.who)
	}
}

// note records that a reservation that can be shed changes to n bytes.
func (a *account) note(h *Reservation, n int64) {
	if h.bytes == 0 || n < h.bytes {
		h.since = time.Now()
	}
	if n == 0 {
		delete(a.reservations, h)
		return
	}
	if a.reservations == nil {
		a.reservations = map[*Reservation]struct{}{}
	}
	a.reservations[h] = struct{}{}
}

// worstLocked returns the reservation to shed, nil if none: if the total is too large, one of the largest
// account; if an account exceeds its share, one of that account, if its sheddable bytes are the
// cause. A small message beside requests and answers of that size makes no difference.
func (b *Budget) worstLocked(who string) *Reservation {
	free, a := b.max-b.total, b.of[who]
	if free >= 0 {
		if a == nil || a.bytes <= free || 2*a.sheddable <= a.bytes {
			return nil
		}
		if h := a.worst(); h != nil && h.bytes < a.bytes { // one alone may be larger
			return h
		}
		return nil
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
			if h := a.worst(); h != nil {
				worst, largest = h, a.bytes
			}
		}
	}
	return worst, largest
}

// worst returns the reservation with the most bytes for the longest time.
func (a *account) worst() (worst *Reservation) {
	var most float64
	for h := range a.reservations {
		if weight := float64(h.bytes) * (time.Since(h.since) + time.Millisecond).Seconds(); weight > most {
			worst, most = h, weight
		}
	}
	return worst
}
