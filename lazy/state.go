package lazy

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A State is a stage in the life of an upstream.
type State string

// The states of an upstream.
const (
	Idle    State = "idle"    // not connected; the next use starts it
	Loading State = "loading" // being started
	Ready   State = "ready"   // connected and listed
	Lost    State = "lost"    // the connection or the last start failed
	Evicted State = "evicted" // never started within its budget; offered no more
	closed  State = "closed"  // the set is closed, or the entry was replaced
)

// ErrClosed means that the set was closed, or that the upstream is no longer in it.
var ErrClosed = errors.New("shutting down")

// An Upstream is one configured server and, at times, a connection to it.
type Upstream struct {
	Server schema.Server
	Owner  string // the only user of the upstream, "" if it is shared; see Set.Dedicate

	set    *Set
	loads  singleflight.Group // with one key, ""
	ctx    context.Context    // ends when the upstream is replaced, and with the set
	cancel context.CancelFunc

	mu         sync.Mutex
	state      State
	conn       *upstream.Conn // not nil while Ready
	users      int            // of conn
	unused     chan struct{}  // not nil while someone waits for users to be 0
	readmitted time.Time      // when it was last tried again after an eviction
	readyAt    time.Time      // when the last connection became ready; zero if there was none
	retry      backoff
	lastErr    error
	idle       *time.Timer // runs while Ready without users
	releaser   func()      // u.release, allocated once for all users
}

// A Status describes an upstream at one moment.
type Status struct {
	Name     string
	State    State
	Err      error // why the last load failed or the last connection was lost
	Failures int   // consecutive failed loads

	FailedAt time.Time // when the first load failed since the last success; zero if none did
	Failed   int64     // failed loads since the upstream was added to the set
	Due      time.Time // when the next load is attempted, if it is not at once
}

// Status returns the upstream's state.
func (u *Upstream) Status() Status {
	u.mu.Lock()
	defer u.mu.Unlock()
	return Status{Name: u.Server.Name, State: u.state, Err: u.lastErr, Failures: u.retry.failures, FailedAt: u.retry.failedAt, Failed: u.retry.failed, Due: u.retry.due}
}

func (u *Upstream) release() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users--
	if u.unused != nil && u.users == 0 {
		close(u.unused)
		u.unused = nil
	}
	u.armIdleTimerLocked()
}

// armIdleTimerLocked starts the idle timer of an upstream without users.
func (u *Upstream) armIdleTimerLocked() {
	after := u.Server.IdleTimeout
	if u.users > 0 || u.state != Ready || after <= 0 {
		return
	}
	conn := u.conn
	u.idle = time.AfterFunc(after, func() {
		if u.set.enter() {
			defer u.set.wg.Done()
			u.set.guarded(func() { u.unload(conn) })
		}
	})
}

// unload closes a connection, if it is still the current one, has no users and is not needed.
func (u *Upstream) unload(conn *upstream.Conn) {
	needed := u.set.opts.Needed != nil && u.set.opts.Needed(u)
	u.mu.Lock()
	if u.conn != conn || u.users > 0 {
		u.mu.Unlock()
		return
	}
	if needed {
		u.armIdleTimerLocked()
		u.mu.Unlock()
		return
	}
	u.state, u.conn = Idle, nil
	u.retry.ended(u.readyAt, false)
	u.set.goClose(conn)
	u.mu.Unlock()
	u.set.changed(u)
}
