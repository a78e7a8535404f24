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

// health tracks whether an upstream is alive.
type health struct {
	conn     *Conn
	activity atomic.Int64 // grows with everything that the upstream sends
	checking atomic.Bool  // a check is in progress
}

var errSilent = errors.New("it answered nothing, three pings included")

// check asks an upstream whose call timed out whether it is alive, and ends the connection if it
// is not. A slow call, or one that a host gave up on, is no evidence: many servers do one
// thing at a time and do not answer pings meanwhile. So only a timeout of the config leads
// here, and any message of the upstream shows that it is alive. check returns when the
// answer is known or the connection ends; one check at a time is enough.
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

// isSilent reports that the upstream sent nothing within the time of a ping. A ping that fails
// at once waits for that time too: a server that is being restarted may be back a moment
// later.
func (h *health) isSilent() bool {
	c := h.conn
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.timing.ping)
	defer cancel()
	before := h.activity.Load()
	answered := make(chan struct{})
	call := &Call{Method: "ping", unlimited: true, Done: func(json.RawMessage, error) { close(answered) }}
	if c.stateless.Load() {
		call.Method = methodDiscover // the stateless era has no ping
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

// An activityReader counts reads as signs of life.
type activityReader struct {
	io.Reader
	activity *atomic.Int64
}

// SyscallConn implements syscall.Conn if the reader does.
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
