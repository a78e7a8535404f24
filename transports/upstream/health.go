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
	// pingWait is how long a ping waits for any message of the upstream.
	pingWait = 10 * time.Second
	// pingTries is the number of pings in a row without a message after which the upstream is lost.
	pingTries = 3
)

// health tracks whether an upstream is alive.
type health struct {
	conn     *Conn
	activity atomic.Int64 // grows with everything that the upstream sends
	checking atomic.Bool  // a check is in progress
}

var errSilent = errors.New("it sent nothing, not even an answer to three pings")

// check pings an upstream whose call timed out, and ends the connection if the upstream sends
// nothing at all. A slow call, or one that a host cancelled, is no reason for a check: many
// servers do one thing at a time and do not answer pings meanwhile. check returns when the
// result is known or the connection ends. If another check is in progress, it returns at once.
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

// isSilent pings the upstream and reports whether it sent nothing within the time of a ping. It
// waits for that time even if the ping fails at once: a server that is being restarted may be
// back a moment later.
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

// An activityReader counts reads that return data.
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
