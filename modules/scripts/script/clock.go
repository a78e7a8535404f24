package script

import (
	"context"
	"sync"
	"time"
)

// A clock limits the running time of a script.
type clock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time // when it was last started
	stopped int       // number of pending stops
	timer   *time.Timer
	place   *place // of the script, given back while the clock is stopped
}

func newClock(limit time.Duration, place *place, late func()) *clock {
	return &clock{left: limit, since: time.Now(), timer: time.AfterFunc(limit, late), place: place}
}

type clockKey struct{}

// StopClock stops the clock of a call's script while a person is asked. The returned function,
// which may be called more than once, restarts it. Without a script it does nothing.
func StopClock(ctx context.Context) (start func()) {
	c, ok := ctx.Value(clockKey{}).(*clock)
	if !ok {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped++; c.stopped == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
		c.place.wait()
	}
	return sync.OnceFunc(c.start)
}

func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped--; c.stopped == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
		c.place.goOn()
	}
}

// end stops the clock for good.
func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped++
	c.timer.Stop()
}
