package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// defaultHeld is gateway.max_held_bytes where the config has none.
const defaultHeld = 512 << 20

// holderOf returns the name under which what a request uses is accounted: its user, or
// its address where no identity provider tells users apart.
func holderOf(r *http.Request, who string) string {
	if who != anybody && who != bearer {
		return who
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip, err := netip.ParseAddr(host)
	if err == nil && !ip.Unmap().Is4() {
		network, _ := ip.Prefix(64) // one machine has all of these addresses
		return network.String()
	}
	return host
}

// A budget accounts for the bytes that are held for all hosts: bodies of requests and
// messages that wait to be read. A holder may have as much as it leaves free for others.
type budget struct {
	most int64

	mu    sync.Mutex
	total int64
	of    map[string]*account
}

// An account is what one holder has of a budget.
type account struct {
	bytes int64
	holds map[*hold]struct{} // those with bytes
}

// A hold is an amount of bytes in a budget. The methods of a nil hold do nothing.
type hold struct {
	in   *budget
	who  string
	shed func() // gives the bytes back soon, and does not block; nil for a body

	// Guarded by in.mu.
	bytes    int64
	since    time.Time // when it had none, or less was unread than before
	shedding bool      // it no longer counts
}

func (b *budget) hold(who string, shed func()) *hold { return &hold{in: b, who: who, shed: shed} }

// reserve adds n bytes, unless the holder may not have them.
func (h *hold) reserve(n int64) bool {
	b := h.in
	b.mu.Lock()
	defer b.mu.Unlock()
	free, own := b.most-b.total, int64(0)
	if a := b.of[h.who]; a != nil {
		own = a.bytes
	}
	if n > free || own > 0 && own+n > free {
		return false
	}
	h.changeLocked(h.bytes + n)
	return true
}

// set says how many bytes there are, of a message that exists already. It returns the
// holds that have to be shed to stay within the limits.
func (h *hold) set(n int) (over []*hold) {
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

func shed(over []*hold) {
	for _, h := range over {
		h.shed()
	}
}

func (h *hold) changeLocked(n int64) {
	if h.shedding || n == h.bytes {
		return
	}
	b := h.in
	a := b.of[h.who]
	if a == nil {
		a = &account{holds: map[*hold]struct{}{}}
		b.of[h.who] = a
	}
	if h.bytes == 0 || n < h.bytes {
		h.since = time.Now()
	}
	b.total += n - h.bytes
	a.bytes += n - h.bytes
	h.bytes = n
	if n > 0 {
		a.holds[h] = struct{}{}
		return
	}
	delete(a.holds, h)
	if len(a.holds) == 0 {
		delete(b.of, h.who)
	}
}

// worstLocked returns what has to be shed: where all is too much, of the largest holder,
// and where a holder has more than its share, of that one. nil is nothing.
func (b *budget) worstLocked(who string) *hold {
	free, a := b.most-b.total, b.of[who]
	if free >= 0 {
		if a == nil || a.bytes <= free || len(a.holds) == 1 {
			return nil
		}
		return a.worst()
	}
	var worst *hold
	var largest int64
	for _, a := range b.of {
		if a.bytes > largest {
			if h := a.worst(); h != nil {
				worst, largest = h, a.bytes
			}
		}
	}
	return worst
}

// worst returns the hold with the most bytes for the longest time.
func (a *account) worst() (worst *hold) {
	var most float64
	for h := range a.holds {
		if h.shed == nil {
			continue
		}
		if weight := float64(h.bytes) * (time.Since(h.since) + time.Millisecond).Seconds(); weight > most {
			worst, most = h, weight
		}
	}
	return worst
}
