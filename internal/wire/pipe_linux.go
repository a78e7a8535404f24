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

// busyRead is the size of a read from which a pipe counts as busy.
const busyRead = 32 << 10

// The sizes that a pipe is widened to. It has 64 KB at first; Linux allows any user one
// megabyte.
const (
	widest    = 1 << 20
	narrowest = 128 << 10
)

// widened is the number of bytes by which all pipes together were widened.
var widened atomic.Int64

// allowance is the limit of widened: half of the memory that Linux allows all pipes of one
// user (pipe(7), pipe-user-pages-soft). Once that memory is used up, new pipes of other
// programs get only two pages.
var allowance = sync.OnceValue(func() int64 {
	text, _ := os.ReadFile("/proc/sys/fs/pipe-user-pages-soft")
	return allowanceOf(text)
})

// allowanceOf returns the limit for the number of pages in a text.
func allowanceOf(text []byte) int64 {
	pages, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	switch {
	case err != nil:
		return 0
	case pages == 0: // no limit
		return 1 << 40
	}
	return pages * int64(os.Getpagesize()) / 2
}

// A pipeEnd is an end of a pipe. The pipe is widened when it turns out to be busy: a message
// of a megabyte then needs a few context switches instead of sixteen. An idle pipe keeps its
// size.
type pipeEnd struct {
	raw   syscall.RawConn // nil if it is not a pipe, or was widened
	extra int64           // bytes by which it was widened
}

func newPipeEnd(file any) pipeEnd {
	if conn, ok := file.(syscall.Conn); ok {
		if raw, err := conn.SyscallConn(); err == nil {
			return pipeEnd{raw: raw}
		}
	}
	return pipeEnd{}
}

// widen widens a pipe once, by less if many are wide already, and reports whether it did.
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

// release reports that the pipe is no longer used.
func (p *pipeEnd) release() {
	widened.Add(-p.extra)
	*p = pipeEnd{}
}
