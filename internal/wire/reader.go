package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of a Reader that are no one's to set.
const (
	readChunk  = 64 << 10 // first size of the buffer, a pipe's capacity
	joinLimit  = 64 << 10 // how much text several lines may make one message of
	prefixKept = 4 << 10  // of a line over the limit, for the id in it
)

// A Fault is a line that is no message. The stream goes on behind it.
type Fault struct {
	Line   []byte // the line, or its first 4 KiB
	TooBig bool   // longer than the Reader's limit
	Err    error
}

func (f *Fault) Error() string { return f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }

// A Reader reads messages, one a line, from what a real program prints: it
// skips a byte order mark and empty lines, takes "\r\n", joins a message
// printed over several lines, separates two on one line, and steps over lines
// that are no message or are too long.
type Reader struct {
	src     io.Reader
	max     int
	buf     []byte // buf[start:end] is read and not yet used
	start   int
	end     int
	begun   bool   // the first line was seen
	rest    []byte // of a line with several messages
	pending error  // to be returned by the next call
	batch   [][]byte
}

// NewReader returns a Reader on src for lines of at most max bytes.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, max: max}
}

// Next returns the next message. Its bytes are the caller's to keep. The error
// is a *Fault where a line was no message (call Next again for what follows),
// or the error of the source, io.EOF at its end.
//
// A JSON-RPC batch is returned whole: a Message with only Raw, which begins
// with '['.
func (r *Reader) Next() (Message, error) {
	for {
		line, err := r.nextText()
		if err != nil {
			return Message{}, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return r.message(line)
		}
	}
}

func (r *Reader) nextText() ([]byte, error) {
	if line := r.rest; line != nil {
		r.rest = nil
		return line, nil
	}
	if err := r.pending; err != nil {
		r.pending = nil
		return nil, err
	}
	return r.line()
}

func (r *Reader) message(line []byte) (Message, error) {
	if line[0] != '{' && line[0] != '[' {
		return Message{}, &Fault{Line: line, Err: &SyntaxError{What: "a line that is no message"}}
	}
	end, err := Skip(line, 0)
	if errors.Is(err, ErrUnexpectedEnd) {
		line, end, err = r.join(line)
	}
	if err != nil {
		return Message{}, &Fault{Line: clip(line), Err: err}
	}
	if rest := bytes.TrimSpace(line[end:]); len(rest) > 0 {
		r.rest = rest
	}
	if line[0] == '[' {
		return Message{Raw: line[:end]}, nil
	}
	m, err := scan(line[:end:end])
	if err != nil {
		return m, &Fault{Line: clip(line), Err: err}
	}
	return m, nil
}

// join adds lines to one whose value is not closed yet. A line that is a
// message of its own ends the attempt and is kept for the next call.
func (r *Reader) join(line []byte) (joined []byte, end int, err error) {
	joined, err = line, ErrUnexpectedEnd
	for len(joined) < joinLimit {
		next, readErr := r.line()
		if readErr != nil {
			r.pending = readErr
			return joined, 0, ErrUnexpectedEnd
		}
		if bytes.HasPrefix(next, []byte(`{"jsonrpc"`)) && Valid(next) {
			r.rest = next
			return joined, 0, ErrUnexpectedEnd
		}
		joined = append(append(joined, ' '), next...)
		if end, err = Skip(joined, 0); !errors.Is(err, ErrUnexpectedEnd) {
			return joined, end, err
		}
	}
	return joined, 0, err
}

// line returns the next line without its end, as bytes of its own.
func (r *Reader) line() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buf[r.start+searched:r.end], '\n'); i >= 0 {
			return r.take(searched + i), nil
		}
		searched = r.end - r.start
		if searched > r.max {
			return nil, r.discard()
		}
		if err := r.fill(); err != nil {
			if searched == 0 || !errors.Is(err, io.EOF) {
				return nil, err
			}
			r.pending = err
			line := r.own(r.buf[r.start:r.end])
			r.start = r.end
			return line, nil
		}
	}
}

// take returns n bytes of the buffer and steps over the newline behind them.
func (r *Reader) take(n int) []byte {
	line := r.buf[r.start : r.start+n]
	r.start += n + 1
	if n >= readChunk {
		// A long line keeps the buffer it was read into: one copy less.
		r.buf, r.start, r.end = r.leftover(), 0, r.end-r.start
		return r.trim(line[:n:n])
	}
	return r.own(line)
}

// leftover returns a new buffer with what is behind the line just taken.
func (r *Reader) leftover() []byte {
	buf := make([]byte, max(readChunk, r.end-r.start))
	copy(buf, r.buf[r.start:r.end])
	return buf
}

func (r *Reader) own(line []byte) []byte { return r.trim(bytes.Clone(line)) }

func (r *Reader) trim(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSuffix(line, []byte("\r"))
}

func (r *Reader) fill() error {
	if r.start > 0 && r.start == r.end {
		r.start, r.end = 0, 0
	}
	if r.end == len(r.buf) {
		r.grow()
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		switch {
		case n > 0:
			return nil
		case err != nil:
			return err
		}
	}
	return io.ErrNoProgress
}

func (r *Reader) grow() {
	buf := r.buf
	if used := r.end - r.start; len(buf) == 0 || used > len(buf)/2 {
		buf = make([]byte, max(readChunk, 2*len(r.buf)))
	}
	r.end = copy(buf, r.buf[r.start:r.end])
	r.buf, r.start = buf, 0
}

// discard drops the rest of a line that is too long and reports it.
func (r *Reader) discard() error {
	fault := &Fault{
		Line:   bytes.Clone(r.buf[r.start:min(r.end, r.start+prefixKept)]),
		TooBig: true,
		Err:    fmt.Errorf("a line of more than %d bytes", r.max),
	}
	r.buf, r.start, r.end = make([]byte, readChunk), 0, 0
	for {
		if err := r.fill(); err != nil {
			r.pending = err
			return fault
		}
		if i := bytes.IndexByte(r.buf[:r.end], '\n'); i >= 0 {
			r.start = i + 1
			return fault
		}
		r.start, r.end = 0, 0
	}
}

func clip(line []byte) []byte { return line[:min(len(line), prefixKept)] }

// FindID looks for the id and method in the beginning of a message that was
// cut off, so that the call it belongs to can be failed. Members behind the
// cut are not found.
func FindID(prefix []byte) (id, method []byte) {
	for key, value := range Members(prefix) {
		switch {
		case keyIs(key, "id"):
			id = value
		case keyIs(key, "method"):
			method = value
		}
	}
	return id, method
}
