package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// pingWait is how long a ping waits for a sign of life.
	pingWait = 10 * time.Second
	// pingTries is how many pings in a row may bring none.
	pingTries = 3
)

// health is what is known of whether an upstream lives.
type health struct {
	conn     *Conn
	activity atomic.Int64 // grows with whatever the upstream sends
	checking atomic.Bool  // it is being found out
}

var errSilent = errors.New("it answered nothing, three pings included")

// check asks an upstream that let a call time out whether it lives, and
// ends the connection if it does not. That a call takes long is no evidence, and
// neither is that a host gave up on one: many servers do one thing at a time and
// answer no ping meanwhile. So only a timeout of the config leads here, and
// whatever the upstream sends shows that it lives. It returns when that is known
// or the connection ends; one check at a time is enough.
func (h *health) check() {
	if !h.checking.CompareAndSwap(false, true) {
		return
	}
	defer h.checking.Store(false)
	for range pingTries {
		if !h.isSilent() {
			return
		}
	}
	h.conn.end(errSilent)
	h.conn.link.kill()
}

// isSilent reports that nothing came from the upstream within the time that a
// ping has. A ping that is refused at once has that time too: a server that is
// being restarted may be there a moment later.
func (h *health) isSilent() bool {
	c := h.conn
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.timing.ping)
	defer cancel()
	before := h.activity.Load()
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
	if h.activity.Load() == before {
		<-ctx.Done()
	}
	return h.activity.Load() == before && c.Err() == nil
}

// An activityReader is one whose reads count as signs of life.
type activityReader struct {
	io.Reader
	activity *atomic.Int64
}

// SyscallConn implements syscall.Conn where the reader does.
func (r activityReader) SyscallConn() (syscall.RawConn, error) {
	if conn, ok := r.Reader.(syscall.Conn); ok {
		return conn.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

func (r activityReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.activity.Add(1)
	}
	return n, err
}
