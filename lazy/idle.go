package lazy

import (
	"time"

	"github.com/dynmcp/dynmcp/transports/upstream"
)

// useLocked counts a user of the connection, which stops the idle timer.
func (u *Upstream) useLocked() *upstream.Conn {
	u.users++
	if u.idle != nil {
		u.idle.Stop()
		u.idle = nil
	}
	return u.conn
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

// armIdleTimerLocked starts the timer that unloads an unused upstream.
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

// unload closes an idle connection; the catalogue stays.
func (u *Upstream) unload(conn *upstream.Conn) {
	u.mu.Lock()
	if u.conn != conn || u.users > 0 {
		u.mu.Unlock()
		return
	}
	u.state, u.conn = Idle, nil
	u.retry.ended(u.readyAt, false)
	u.set.goClose(conn)
	u.mu.Unlock()
	u.set.changed(u)
}
