package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

const (
	// pingWait is how long a ping waits for a sign of life.
	pingWait = 10 * time.Second
	// pingTries is how many pings in a row may bring none.
	pingTries = 3
)

var errSilent = errors.New("it answered nothing, three pings included")

// checkHealth asks an upstream that let a call time out whether it lives, and
// ends the connection if it does not. That a call takes long is no evidence, and
// neither is that a host gave up on one: many servers do one thing at a time and
// answer no ping meanwhile. So only a timeout of the config leads here, and
// whatever the upstream sends shows that it lives. It returns when that is known
// or the connection ends; one check at a time is enough.
func (c *Conn) checkHealth() {
	if !c.checking.CompareAndSwap(false, true) {
		return
	}
	defer c.checking.Store(false)
	for range pingTries {
		if !c.pingInVain() {
			return
		}
	}
	c.lose(errSilent)
	c.kill()
}

// pingInVain reports that nothing came from the upstream in the time that a ping
// has. One that is refused at once has that time too: what is restarting may be
// there a moment later.
func (c *Conn) pingInVain() bool {
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.ping)
	defer cancel()
	before := c.heard.Load()
	answered := make(chan struct{})
	call := &Call{Method: "ping", unlimited: true, Done: func(json.RawMessage, error) { close(answered) }}
	if c.stateless.Load() {
		call.Method = methodDiscover // there is no ping any more
	}
	c.Start(call)
	defer c.Cancel(call, nil)
	select {
	case <-answered:
	case <-ctx.Done():
	}
	if c.heard.Load() == before {
		<-ctx.Done()
	}
	return c.heard.Load() == before && c.Err() == nil
}

// A heard reader counts what it brings.
type heard struct {
	io.Reader
	times *atomic.Int64
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.times.Add(1)
	}
	return n, err
}
