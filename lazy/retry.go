package lazy

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// An EvictedError means that an upstream used up its load budget.
type EvictedError struct {
	Upstream string
	Attempts int   // failed loads
	Err      error // the failure that used the budget up; nil if an earlier load did
}

func (e *EvictedError) Error() string {
	if e.Err == nil {
		return "it failed to start too often and is no longer offered"
	}
	return fmt.Sprintf("%v (failed to load after %d attempts: %s will no longer be offered)", e.Err, e.Attempts, e.Upstream)
}

func (e *EvictedError) Unwrap() error { return e.Err }

// The pauses between attempts to start a server that failed, or ended soon, repeatedly.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 30 * time.Second
	shortPause = 2 * time.Second // the rest of a pause is waited out if it is no longer than this
	soon       = time.Minute     // the loss of a younger connection is a failure

	readmitPause = 10 * time.Minute // between two attempts of an evicted server
)

// A backoff counts failures in a row and computes when the next attempt is due. The lock of
// its upstream guards it.
type backoff struct {
	failures  int         // failed loads since the last success, without shortages
	shortages int         // loads since then that failed because we lack resources
	losses    int         // connections in a row that were lost soon
	due       time.Time   // of the next attempt
	pause     *time.Timer // fires when a load has waited for due; nil while none waits

	failedAt time.Time // when the first load failed since the last success; zero if none did
	failed   int64     // failed loads in total
}

// loaded records a successful load.
func (b *backoff) loaded() {
	b.failures, b.shortages, b.due, b.failedAt = 0, 0, time.Time{}, time.Time{}
}

// count counts a failed load, whatever the reason.
func (b *backoff) count() {
	if b.failed++; b.failedAt.IsZero() {
		b.failedAt = time.Now()
	}
}

// ended records the end of a connection. A connection that lasted resets the count of losses.
// A loss soon after the start counts, and the second in a row delays the next attempt.
func (b *backoff) ended(readyAt time.Time, loss bool) {
	switch {
	case time.Since(readyAt) >= soon:
		b.losses = 0
	case loss:
		if b.losses++; b.losses > 1 {
			b.backOff()
		}
	}
}

// backOff delays the next attempt. The pause doubles with each failure; the first loss does
// not count.
func (b *backoff) backOff() {
	b.due = time.Now().Add(pauseAfter(b.failures + b.shortages + max(b.losses-1, 0)))
}

// reset forgets all failures in a row, and ends a pause.
func (b *backoff) reset() {
	b.failures, b.shortages, b.losses = 0, 0, 0
	b.endPause()
}

// endPause makes the next attempt due now.
func (b *backoff) endPause() {
	b.due = time.Time{}
	if b.pause != nil {
		b.pause.Reset(0)
	}
}

// left returns the time until the next attempt is due.
func (b *backoff) left() time.Duration { return time.Until(b.due) }

// inARow returns the number of consecutive failures of any kind.
func (b *backoff) inARow() int { return b.failures + b.shortages + b.losses }

// pauseAfter returns the pause after so many failures in a row. It varies by a fifth, so
// that servers that failed together are not restarted together.
func pauseAfter(failures int) time.Duration {
	pause := min(firstPause<<min(failures-1, 10), longPause)
	return pause - pause/5 + rand.N(2*pause/5)
}
