package wire

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// busyRead is how much a read brings that shows a busy pipe.
const busyRead = 32 << 10

// The sizes that a pipe is widened to, of which 64 KB is what it has at first. A
// megabyte is what Linux allows any user.
const (
	widest    = 1 << 20
	narrowest = 128 << 10
)

// widened is by how many bytes all pipes together were.
var widened atomic.Int64

// allowance is how many bytes that may be: half of what Linux lets the pipes of one
// user have in all (pipe(7), pipe-user-pages-soft). When those are used up, new pipes
// of other programs get two pages.
var allowance = sync.OnceValue(func() int64 {
	text, _ := os.ReadFile("/proc/sys/fs/pipe-user-pages-soft")
	pages, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	switch {
	case err != nil:
		return 0
	case pages == 0: // no limit
		return 1 << 40
	}
	return pages * int64(os.Getpagesize()) / 2
})

// A pipeEnd is an end of a pipe, which is widened when it turns out to be busy: then a
// message of a megabyte needs a few changes between processes and not sixteen. An idle
// one stays as it is.
type pipeEnd struct {
	raw   syscall.RawConn // nil if it is no pipe, or was widened
	extra int64           // by how much it was
}

func newPipeEnd(file any) pipeEnd {
	if conn, ok := file.(syscall.Conn); ok {
		if raw, err := conn.SyscallConn(); err == nil {
			return pipeEnd{raw: raw}
		}
	}
	return pipeEnd{}
}

// widen widens a pipe once, by less where many are wide already, and reports whether
// it did.
func (p *pipeEnd) widen() bool {
	if p.raw == nil {
		return false
	}
	raw := p.raw
	p.raw = nil
	size := int64(widest)
	for left := allowance() - widened.Load(); size > left/8; size /= 2 {
		if size == narrowest {
			return false
		}
	}
	_ = raw.Control(func(fd uintptr) {
		now, err := unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0)
		if err != nil || int64(now) >= size {
			return
		}
		if _, err := unix.FcntlInt(fd, unix.F_SETPIPE_SZ, int(size)); err == nil {
			p.extra = size - int64(now)
		}
	})
	widened.Add(p.extra)
	return p.extra > 0
}

// release says that the pipe is not used any more.
func (p *pipeEnd) release() {
	widened.Add(-p.extra)
	*p = pipeEnd{}
}
