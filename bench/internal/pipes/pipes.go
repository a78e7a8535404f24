// Package pipes moves lines through pipes as cheaply as a process can: it reads and writes them in
// place, and enlarges the pipes. The cost of a benchmark's own processes would hide the measured one.
package pipes

import (
	"bytes"
	"io"
	"os"
)

// capacity is the size of enlarged pipes, the most that Linux allows unprivileged users.
const capacity = 1 << 20

// A Reader reads lines in place.
type Reader struct {
	// Idle, if not nil, is called before more data is read, which invalidates the lines that
	// Next has returned.
	Idle func() error

	file       *os.File
	buf        []byte
	start, end int // buf[start:end] is read and not yet returned
	searched   int // so many bytes after start have no newline
}

// NewReader returns a Reader of a pipe, and sets the pipe to blocking mode. With wide it enlarges the
// pipe.
func NewReader(file *os.File, wide bool) *Reader {
	prepare(file, wide)
	return &Reader{file: file, buf: make([]byte, room(wide))}
}

// room returns the initial buffer size. It is small for pipes of the default size, whose programs must
// start quickly: the kernel clears memory in units of 2 MB.
func room(wide bool) int {
	if wide {
		return 4 * capacity
	}
	return capacity / 4
}

// Next returns the next line with its newline. The line is valid, and may be changed, until the next
// call of Next or, if Idle is set, of Idle.
func (r *Reader) Next() ([]byte, error) {
	for {
		at := r.start + r.searched
		if i := bytes.IndexByte(r.buf[at:r.end], '\n'); i >= 0 {
			line := r.buf[r.start : at+i+1]
			r.start, r.searched = at+i+1, 0
			return line, nil
		}
		r.searched = r.end - r.start
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

func (r *Reader) fill() error {
	if r.Idle != nil {
		if err := r.Idle(); err != nil {
			return err
		}
	}
	if r.searched == 0 {
		r.start, r.end = 0, 0
	}
	if len(r.buf)-r.end < min(capacity/2, len(r.buf)/4) {
		buf := r.buf
		if r.searched > len(buf)/2 {
			buf = make([]byte, 2*len(buf))
		}
		r.start, r.end, r.buf = 0, copy(buf, r.buf[r.start:r.end]), buf
	}
	n, err := read(r.file, r.buf[r.end:])
	r.end += n
	if n == 0 && err == nil {
		err = io.EOF
	}
	return err
}

// A Writer collects data until Flush. It copies short parts; long ones must not change until then.
type Writer struct {
	file  *os.File
	parts [][]byte
	open  bool // the last part ends at the end of short
	short []byte
}

// NewWriter returns a Writer of a pipe, and sets the pipe to blocking mode. With wide it enlarges the
// pipe.
func NewWriter(file *os.File, wide bool) *Writer {
	prepare(file, wide)
	return &Writer{file: file, short: make([]byte, 0, room(wide)/2)}
}

// Add adds a part, which Flush writes.
func (w *Writer) Add(part []byte) error {
	switch {
	case len(part) == 0:
		return nil
	case len(part) >= 4<<10:
		w.parts, w.open = append(w.parts, part), false
		return nil
	case len(w.short)+len(part) > cap(w.short) || len(w.parts) > 500:
		if err := w.Flush(); err != nil {
			return err
		}
	}
	at := len(w.short)
	if w.open {
		last := &w.parts[len(w.parts)-1]
		at -= len(*last)
		w.parts = w.parts[:len(w.parts)-1]
	}
	w.short = append(w.short, part...)
	w.parts, w.open = append(w.parts, w.short[at:]), true
	return nil
}

// Flush writes all parts.
func (w *Writer) Flush() error {
	err := writeAll(w.file, w.parts)
	w.parts, w.short, w.open = w.parts[:0], w.short[:0], false
	return err
}
