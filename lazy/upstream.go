package lazy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

func newUpstream(set *Set, server schema.Server) *Upstream {
	u := &Upstream{Server: server, set: set, state: Idle}
	u.ctx, u.cancel = context.WithCancel(set.ctx)
	u.releaser = u.release
	return u
}

// Conn returns the connection, or nil, without counting a use. It is for
// broadcasts, which must not start a server.
func (u *Upstream) Conn() *upstream.Conn {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.conn
}

// Ready is Acquire without waiting: ok is false if the upstream must be started first.
func (u *Upstream) Ready() (conn *upstream.Conn, release func(), ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state != Ready || u.conn.Err() != nil {
		return nil, nil, false
	}
	u.users++
	if u.idle != nil {
		u.idle.Stop()
		u.idle = nil
	}
	return u.conn, u.releaser, true
}

// Acquire returns a connection that stays open until release is called. If necessary it
// starts the upstream, after the rest of its pause if that is short. Callers share one start.
// The error is that of ctx if ctx ends first (the start continues), an *EvictedError,
// ErrClosed, a *transports.Failure if the upstream backs off for longer, or the error of the
// load.
func (u *Upstream) Acquire(ctx context.Context) (conn *upstream.Conn, release func(), err error) {
	return u.acquire(ctx, false)
}

// Load is Acquire, but ends a pause at once: the caller asked for this server in particular.
func (u *Upstream) Load(ctx context.Context) (conn *upstream.Conn, release func(), err error) {
	return u.acquire(ctx, true)
}

func (u *Upstream) acquire(ctx context.Context, force bool) (*upstream.Conn, func(), error) {
	// A connection can be lost between its load and its use, hence the loop.
	for range 3 {
		if conn, release, ok := u.Ready(); ok {
			return conn, release, nil
		}
		u.lost(u.Conn()) // the watcher may not have run yet
		if force {
			u.mu.Lock()
			u.retry.endPause()
			u.mu.Unlock()
		}
		select {
		case loaded := <-u.loads.DoChan("", u.load):
			failure, ok := errors.AsType[*transports.Failure](loaded.Err)
			early := force && ok && failure.Code == transports.CodeBackingOff // this load was refused before endPause
			if loaded.Err != nil && !early {
				return nil, nil, loaded.Err
			}
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return nil, nil, u.failure(transports.CodeExited, errors.New("it ends as soon as it has started"))
}

func (u *Upstream) failure(code int64, cause error) error {
	return &transports.Failure{Upstream: u.Server.Name, Code: code, Outcome: transports.NotSent, Cause: cause}
}

// load starts the upstream, unless begin refuses. It runs on a goroutine of singleflight.
func (u *Upstream) load() (any, error) {
	if !u.set.enter() {
		return nil, ErrClosed
	}
	defer u.set.wg.Done()
	u.waitOutPause()
	if over, err := u.begin(); over {
		return nil, err
	}
	u.set.changed(u)
	conn, err := u.tryLoad()
	err = u.loaded(conn, err)
	u.set.changed(u)
	return nil, err
}

// begin marks the upstream as being started. over is true if it is already ready, or must not
// be started. Callers do not decide that, because the state may have changed since they saw it.
func (u *Upstream) begin() (over bool, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.state == closed || u.ctx.Err() != nil: // Set.Close cancels before it closes
		return true, ErrClosed
	case u.state == Ready && u.conn.Err() == nil:
		return true, nil // another load ended just before this one began
	case u.state == Evicted:
		return true, &EvictedError{Upstream: u.Server.Name, Attempts: u.retry.failures}
	}
	if wait := u.retry.left(); wait > 0 {
		return true, u.backingOffLocked(wait)
	}
	u.state, u.conn = Loading, nil // a lost connection is closed by its watcher
	return false, nil
}

// tryLoad turns a panic into an error: singleflight would raise it again on a goroutine of
// its own, which ends the process.
func (u *Upstream) tryLoad() (conn *upstream.Conn, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = u.failure(transports.CodeStartFailed, fmt.Errorf("internal error: %v", r))
		}
	}()
	return u.set.opts.Load(u.ctx, u)
}

// loaded records the result of a load. It returns the error for the callers.
func (u *Upstream) loaded(conn *upstream.Conn, err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.state == closed || u.ctx.Err() != nil:
		if conn != nil {
			u.set.goClose(conn)
		}
		return ErrClosed
	case err != nil:
		return u.failedLocked(err)
	}
	u.state, u.conn, u.readyAt, u.lastErr = Ready, conn, time.Now(), nil
	u.retry.loaded()
	u.armIdleTimerLocked()
	u.set.watch(u, conn)
	return nil
}

// lost records that a connection ended by itself, if that is not known yet. The next use
// reconnects at once, unless the previous connection was lost soon as well: a server that
// crashes in every call must not be restarted at the rate of the calls. A session that
// the upstream forgot is not a crash. The crashes of a server on another replica are counted
// by that replica.
func (u *Upstream) lost(conn *upstream.Conn) {
	if conn == nil || conn.Err() == nil {
		return
	}
	loss := conn.Loss()
	u.mu.Lock()
	if u.conn != conn {
		u.mu.Unlock()
		return
	}
	// Its users may release it later.
	u.state, u.conn, u.lastErr = Lost, nil, loss
	counts := !conn.Remote() && !errors.Is(loss, upstream.ErrSessionLost) && !errors.Is(loss, upstream.ErrMoved)
	u.retry.ended(u.readyAt, counts)
	u.mu.Unlock()
	u.set.changed(u)
}

// Retire makes the next use start the upstream again, because it is to run elsewhere: conn
// takes no new calls, and is closed when its calls in flight have ended.
func (u *Upstream) Retire(conn *upstream.Conn) {
	u.mu.Lock()
	current := u.conn == conn
	if current {
		u.state, u.conn = Idle, nil
		u.retry.ended(u.readyAt, false)
		if u.idle != nil {
			u.idle.Stop()
		}
	}
	u.mu.Unlock()
	conn.Retire() // its watcher closes it
	if current {
		u.set.changed(u)
	}
}

// Gone is closed when the upstream is no longer part of the config, and with the set.
func (u *Upstream) Gone() <-chan struct{} { return u.ctx.Done() }

// close ends the upstream for good and returns its connection, which the caller closes.
// unused is closed when the connection has no users left.
func (u *Upstream) close() (conn *upstream.Conn, unused <-chan struct{}) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn = u.conn
	u.state, u.conn = closed, nil
	u.cancel()
	if u.idle != nil {
		u.idle.Stop()
	}
	done := make(chan struct{})
	if u.users == 0 {
		close(done)
	} else {
		u.unused = done
	}
	return conn, done
}

// failedLocked records a failed load and returns the error for the callers. The budget is not
// charged if the server requires a login, if our own resources did not suffice, or if the
// failure is that of another replica, which counts it.
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

// backingOffLocked returns the error for callers while the next attempt is due in wait.
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

// Readmit allows an evicted upstream one more attempt. If that fails, it is evicted again. A
// call within readmitPause of the last one does nothing, because a model may call it in a loop.
func (u *Upstream) Readmit() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == Evicted && (u.readmitted.IsZero() || time.Since(u.readmitted) >= readmitPause) {
		u.state, u.readmitted = Idle, time.Now()
	}
}

// resetRetries ends an eviction or a pause, and restores the whole budget.
func (u *Upstream) resetRetries() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.state == Evicted {
		u.state = Idle
	}
	u.retry.reset()
}

// waitOutPause waits until the next attempt is due, if that is soon. It is part of the
// load, so that callers that come meanwhile share the attempt and its result.
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

// StartRetrying starts the upstream and, while that fails, tries again after every pause. It
// calls retry with the error of each failed start. It returns when a start has succeeded,
// retry returns false, ctx ends, or the upstream is closed or evicted.
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
		if pause <= 0 { // the failure did not count
			pause = pauseAfter(failures)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-u.ctx.Done():
			return
		}
	}
}
