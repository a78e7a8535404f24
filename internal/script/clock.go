package script

import (
	"context"
	"sync"
	"time"
)

// A clock measures the time that a script may take. It calls late when that is over.
type clock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time // when it was started last
	stopped int       // how many have stopped it
	timer   *time.Timer
}

func newClock(limit time.Duration, late func()) *clock {
	return &clock{left: limit, since: time.Now(), timer: time.AfterFunc(limit, late)}
}

type clockKey struct{}

// StopClock stops the clock of the script that a call is made for, while a person is asked.
// The function that it returns, which may be called more than once, starts the clock. Without
// a script there is nothing to stop.
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
	}
	return sync.OnceFunc(c.start)
}

func (c *clock) start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped--; c.stopped == 0 {
		c.since = time.Now()
		c.timer.Reset(max(c.left, 0))
	}
}

// end stops the clock for good.
func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped++
	c.timer.Stop()
}
