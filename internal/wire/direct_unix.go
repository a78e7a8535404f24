//go:build unix

package wire

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxParts is how many parts one write takes (IOV_MAX is 1024).
const maxParts = 1000

// A direct writes as much to a non-blocking file as it takes. It is used by one
// goroutine at a time.
type direct struct {
	raw  syscall.RawConn
	once func(fd uintptr) bool // the method value writeOnce, allocated once
	pipe pipeEnd

	parts   [][]byte
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
	d := &direct{raw: raw, pipe: newPipeEnd(dst)}
	d.once = d.writeOnce
	return d
}

// write writes a queue, the parts behind it and end, and returns the number of bytes
// written. An error is not returned: writing the rest meets it again. A pipe that does not
// take everything is busy.
func (d *direct) write(q *queue, parts [][]byte, end []byte) int {
	d.parts = append(q.appendTo(d.parts[:0]), parts...)
	if len(end) > 0 {
		d.parts = append(d.parts, end)
	}
	all := d.parts
	size := 0
	for _, part := range all {
		size += len(part)
	}
	n := d.try()
	if n < size && d.pipe.widen() {
		left := n
		for left >= len(d.parts[0]) {
			left -= len(d.parts[0])
			d.parts = d.parts[1:]
		}
		d.parts[0] = d.parts[0][left:]
		n += d.try()
	}
	clear(all)
	d.parts = all[:0]
	return n
}

func (d *direct) try() int {
	d.written = 0
	if d.raw.Write(d.once) != nil {
		return 0
	}
	return d.written
}

func (d *direct) writeOnce(fd uintptr) bool {
	if n, err := writev(int(fd), d.parts[:min(len(d.parts), maxParts)]); err == nil {
		d.written = n
	}
	return true
}
