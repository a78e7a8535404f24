package catalog

import "time"

// A breath interrupts work that takes long, so that it holds up no call. A
// goroutine that never waits keeps its processor for ten milliseconds at a time,
// and what upstreams have written meanwhile may be seen only then.
type breath struct {
	taken int
	last  time.Time
}

const (
	breathEvery = 200 * time.Microsecond
	breathFor   = 20 * time.Microsecond
)

// take is called at every step of some microseconds. It waits for a moment if the
// work began, or it last waited, a while ago.
func (b *breath) take() {
	if b.taken++; b.taken%16 != 0 {
		return
	}
	switch now := time.Now(); {
	case b.last.IsZero():
		b.last = now
	case now.Sub(b.last) > breathEvery:
		time.Sleep(breathFor)
		b.last = time.Now()
	}
}
