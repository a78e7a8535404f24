// Package pipes moves lines through pipes as cheaply as a process can: they are
// read in place, written from where they lie, and the pipes are wide. What the
// processes of a benchmark cost besides that which is measured hides it.
package pipes

import (
	"bytes"
	"io"
	"os"
)

// capacity is what a pipe is widened to, the most that Linux allows any user.
const capacity = 1 << 20

// A Reader reads lines in place.
type Reader struct {
	// Idle, if not nil, is called before more is read, which makes the lines that
	// Next has returned invalid.
	Idle func() error

	file       *os.File
	buf        []byte
	start, end int // buf[start:end] is read and not yet returned
	searched   int // that many bytes behind start hold no newline
}

// NewReader returns a Reader on a pipe, whose end blocks from now on; it widens that
// if it is to.
func NewReader(file *os.File, wide bool) *Reader {
	prepare(file, wide)
	return &Reader{file: file, buf: make([]byte, room(wide))}
}

// room is how much a Reader or Writer takes at first. A program with pipes as they
// are is to start at once, and the kernel clears memory by the 2 MB.
func room(wide bool) int {
	if wide {
		return 4 * capacity
	}
	return capacity / 4
}

// Next returns the next line with its newline. The caller may change it, until it
// calls Next again or, where Idle is set, until that is called.
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

// A Writer keeps what it is given until Flush: what is short is copied, what is long
// must not change until then.
type Writer struct {
	file  *os.File
	parts [][]byte
	open  bool // the last part ends where short does
	short []byte
}

// NewWriter returns a Writer on a pipe, whose end blocks from now on; it widens that
// if it is to.
func NewWriter(file *os.File, wide bool) *Writer {
	prepare(file, wide)
	return &Writer{file: file, short: make([]byte, 0, room(wide)/2)}
}

// Add adds to what Flush writes.
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

// Flush writes what was added and returns when all of it is written.
func (w *Writer) Flush() error {
	err := writeAll(w.file, w.parts)
	w.parts, w.short, w.open = w.parts[:0], w.short[:0], false
	return err
}
