package lazy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// An EvictedError says that an upstream used up its load budget.
type EvictedError struct {
	Upstream string
	Attempts int   // failed loads
	Err      error // the failure that used the budget up; nil if that was an earlier load's
}

func (e *EvictedError) Error() string {
	if e.Err == nil {
		return "it failed to start too often and is no longer offered"
	}
	return fmt.Sprintf("%v (failed to load after %d attempts: %s will no longer be offered)", e.Err, e.Attempts, e.Upstream)
}

func (e *EvictedError) Unwrap() error { return e.Err }

// The pauses between attempts to start what failed, or ended soon, again and
// again.
const (
	firstPause = 200 * time.Millisecond
	longPause  = 30 * time.Second
	shortPause = 2 * time.Second // what is left of a pause is waited out if it is no longer
	soon       = time.Minute     // a connection that was lost sooner is a failure

	readmitPause = 10 * time.Minute // between two attempts of what was evicted
)

// A backoff counts failures in a row and says when the next attempt is due. The lock of
// its upstream guards it.
type backoff struct {
	failures  int         // loads that failed since the last that did not
	shortages int         // loads since then that we had no resources for
	losses    int         // connections in a row that were lost soon
	due       time.Time   // of the next attempt
	pause     *time.Timer // fires when a load has waited for that; nil while none waits

	failedAt time.Time // when the first load failed since the last that did not; zero where none did
	failed   int64     // loads that failed, ever
}

// loaded forgets failed loads.
func (b *backoff) loaded() {
	b.failures, b.shortages, b.due, b.failedAt = 0, 0, time.Time{}, time.Time{}
}

// count counts a load that failed, whatever the reason.
func (b *backoff) count() {
	if b.failed++; b.failedAt.IsZero() {
		b.failedAt = time.Now()
	}
}

// ended notes that a connection ended. One that was there for long makes earlier losses
// forgotten; of another the loss counts, if it is one, from the second on.
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

// backOff has the next attempt wait, twice as long for each failure; the first loss
// does not count yet.
func (b *backoff) backOff() {
	b.due = time.Now().Add(pauseAfter(b.failures + b.shortages + max(b.losses-1, 0)))
}

// restart forgets all failures in a row, and ends a pause.
func (b *backoff) restart() {
	b.failures, b.shortages, b.losses = 0, 0, 0
	b.endPause()
}

// endPause has the next attempt be due now.
func (b *backoff) endPause() {
	b.due = time.Time{}
	if b.pause != nil {
		b.pause.Reset(0)
	}
}

// left is the time until the next attempt.
func (b *backoff) left() time.Duration { return time.Until(b.due) }

// inARow is how often the upstream failed in a row, in any way.
func (b *backoff) inARow() int { return b.failures + b.shortages + b.losses }

// pauseAfter returns the pause after so many failures in a row: a fifth more or
// less than its length, so that many servers that fell together do not rise
// together.
func pauseAfter(failures int) time.Duration {
	pause := min(firstPause<<min(failures-1, 10), longPause)
	return pause - pause/5 + rand.N(2*pause/5)
}

// failedLocked counts a failed load. Neither that the server wants a login nor
// that we have no resources to start it counts as a failure of its; and where it runs, or
// could run, on another replica, that replica counts.
func (u *Upstream) failedLocked(err error) error {
	u.state, u.lastErr = Lost, err
	if errors.Is(err, upstream.ErrMoved) {
		return err
	}
	u.retry.count()
	if failure, ok := errors.AsType[*transports.Failure](err); ok {
		switch failure.Code {
		case transports.CodeAuthRequired, transports.CodeNotPlaced, transports.CodeBackingOff:
			return err
		case transports.CodeNoResources:
			u.retry.shortages++
			u.retry.backOff()
			return err
		}
	}
	u.retry.failures++
	budget := u.Server.LoadBudget
	if u.Server.Lazy() && u.readyAt.IsZero() && budget > 0 {
		if u.retry.failures < budget {
			u.state = Idle
			return err
		}
		u.state = Evicted
		return &EvictedError{Upstream: u.Server.Name, Attempts: u.retry.failures, Err: err}
	}
	u.retry.backOff()
	return err
}

// backingOffLocked says that the next attempt is due in wait.
func (u *Upstream) backingOffLocked(wait time.Duration) error {
	f := &transports.Failure{Upstream: u.Server.Name, Code: transports.CodeBackingOff, Outcome: transports.NotSent, RetryAfter: wait}
	cause := u.lastErr
	if last, ok := errors.AsType[*transports.Failure](cause); ok {
		cause, f.Stderr, f.Hint = last.Cause, last.Stderr, last.Hint
	}
	times := "it failed"
	if n := u.retry.inARow(); n > 1 {
		times = fmt.Sprintf("it failed %d times in a row", n)
	}
	f.Cause = fmt.Errorf("%s; the next attempt is due in %s: %w", times, wait.Truncate(100*time.Millisecond)+100*time.Millisecond, cause)
	return f
}

// Readmit has an upstream that was evicted tried once more: it is offered again if
// that succeeds, and evicted again if it fails. It does nothing within readmitPause of
// the last time: a model may ask for it without end.
func (u *Upstream) Readmit() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == Evicted && (u.readmitted.IsZero() || time.Since(u.readmitted) >= readmitPause) {
		u.state, u.readmitted = Idle, time.Now()
	}
}

// readmit gives an upstream that failed another chance, with a full budget.
func (u *Upstream) readmit() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == Evicted {
		u.state = Idle
	}
	u.retry.restart()
}

// waitOutPause waits for the next attempt to be due, if that is soon. It is part
// of the load, so that callers that come meanwhile share the attempt and its end.
func (u *Upstream) waitOutPause() {
	u.mu.Lock()
	left := u.retry.left()
	if left <= 0 || left > shortPause {
		u.mu.Unlock()
		return
	}
	timer := time.NewTimer(left)
	u.retry.pause = timer
	u.mu.Unlock()
	select {
	case <-timer.C:
	case <-u.ctx.Done():
		timer.Stop()
	}
	u.mu.Lock()
	u.retry.pause = nil
	u.mu.Unlock()
}

func isBackingOff(err error) bool {
	var failure *transports.Failure
	return errors.As(err, &failure) && failure.Code == transports.CodeBackingOff
}

// StartRetrying starts the upstream and, while that fails, tries again after every
// pause. It returns when a start has succeeded, when retry, which gets the error
// of each that has not, reports false, when ctx ends, and when the upstream is
// closed or evicted.
func (u *Upstream) StartRetrying(ctx context.Context, retry func(error) bool) {
	for failures := 1; ; failures++ {
		_, release, err := u.Acquire(ctx)
		if err == nil {
			release()
			return
		}
		_, evicted := errors.AsType[*EvictedError](err)
		if !retry(err) || ctx.Err() != nil || errors.Is(err, ErrClosed) || evicted {
			return
		}
		u.mu.Lock()
		pause := u.retry.left()
		u.mu.Unlock()
		if pause <= 0 { // such as after a failure that does not count
			pause = pauseAfter(failures)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
