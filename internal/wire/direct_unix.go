//go:build unix

package wire

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// A direct writes as much to a non-blocking file as it takes. It is used by one
// goroutine at a time.
type direct struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool // the method value writeOnce, allocated once

	data    []byte
	written int
}

// newDirect returns nil if dst is not a file or blocks.
func newDirect(dst io.Writer) *direct {
	file, ok := dst.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil
	}
	var flags int
	err = raw.Control(func(fd uintptr) { flags, _ = unix.FcntlInt(fd, unix.F_GETFL, 0) })
	if err != nil || flags&unix.O_NONBLOCK == 0 {
		return nil
	}
	d := &direct{raw: raw}
	d.once = d.writeOnce
	return d
}

// write returns how many bytes were taken. An error is left to be met again when
// the rest is written.
func (d *direct) write(data []byte) int {
	d.data, d.written = data, 0
	if d.raw.Write(d.once) != nil {
		d.written = 0
	}
	d.data = nil
	return d.written
}

func (d *direct) writeOnce(fd uintptr) bool {
	n, err := unix.Write(int(fd), d.data)
	if err == nil {
		d.written = n
	}
	return true
}
