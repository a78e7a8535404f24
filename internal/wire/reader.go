package wire

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// Fixed limits of a Reader.
const (
	readChunk = 64 << 10 // size of the buffer it keeps, a pipe's capacity
	joinLimit = 64 << 10 // longest message that is put together from several lines
)

// A Reader reads messages, one per line, from the output of real programs: it skips a
// byte order mark and empty lines, accepts "\r\n", joins a message printed over several
// lines, and separates two on one line. It reports a line that is not a message or is too
// long, and continues behind it. A message lies in the Reader's own buffer, which the next
// message reuses.
type Reader struct {
	// Idle, if not nil, is called before each read of the source, when every complete message
	// was returned. Like the read, it may block.
	Idle func()

	// Cork, if not nil, is held while the caller of Next handles the messages of one read:
	// until the next read. The caller must call Uncork before it blocks.
	Cork *Cork

	// Back is the Writer to the peer that src reads from, if Cork holds that Writer back;
	// otherwise nil.
	Back *Writer

	// MaxDepth is how many levels a message may nest, unless it is a batch; 0 is 10,000.
	MaxDepth int

	src      io.Reader
	pipe     pipeEnd
	max      int
	small    []byte // a buffer for lines that fit
	buf      []byte // buf[start:end] was read and is not yet used; small, or a large buffer
	start    int
	end      int
	searched int  // that many bytes after start hold no newline
	expected int  // expected size of a long line
	begun    bool // the first line was seen
	outline  Outline
	returned []byte        // the message that Next returned last
	rest     []byte        // text that comes before the next line
	unread   []byte        // a line that join read and did not use
	pending  error         // error returned in place of the next line
	holding  bool          // Cork is held on behalf of this Reader
	held     MemoryCounter // counts buf
}

// The linker sets lent to "overwritten" in programs that tests build. See OverwriteLent.
var lent string

var overwriteLent = lent == "overwritten"

// OverwriteLent makes every Reader overwrite a message once it is no longer valid. Tests
// call it first: code that uses an old message without a copy then fails.
func OverwriteLent() { overwriteLent = true }

// scanned is called with the number of bytes of each scan. Tests count them: the cost of
// input, however broken, must be proportional to its length.
var scanned = func(int) {}

// NewReader returns a Reader on src for lines of at most max bytes.
func NewReader(src io.Reader, max int) *Reader {
	return &Reader{src: src, pipe: newPipeEnd(src), max: max}
}

// Next returns the next message. Its bytes are valid until the next call of Next; use
// Message.Clone to keep it longer. The error is a *Fault, whose bytes may be kept, if a line
// was not a message: call Next again for the messages after it. Otherwise it is the error
// of the source, io.EOF at its end.
//
// A JSON-RPC batch is returned whole: a Message with only Raw, which begins with '['.
func (r *Reader) Next() (Message, error) {
	if overwriteLent {
		for i := range r.returned {
			r.returned[i] = 0xee
		}
	}
	r.returned = nil
	for {
		text, err := r.text()
		if err != nil {
			return Message{}, err
		}
		// Space after the text may belong to a value that is not closed yet.
		if text = text[space(text, 0):]; len(text) > 0 {
			return r.message(text)
		}
	}
}

// longMessage is the size from which a message is handled without holding Cork: the
// messages of others would wait while it is checked.
const longMessage = 128 << 10

// Uncork releases Cork until the next read. The goroutine that calls Next calls it
// before it blocks, and when it stops reading before the source has returned an error.
func (r *Reader) Uncork() {
	if r.holding {
		r.holding = false
		r.Cork.Release(r.Back)
	}
}

func (r *Reader) text() ([]byte, error) {
	if text := r.rest; text != nil {
		r.rest = nil
		return text, nil
	}
	return r.line()
}

func (r *Reader) message(text []byte) (Message, error) {
	if text[0] != '{' && text[0] != '[' {
		return Message{}, NewFault(text, &SyntaxError{What: "a line that is no message"})
	}
	if len(text) > longMessage {
		r.Uncork()
	}
	m, end, err := r.messageOrBatch(text)
	scanned(end)
	if errors.Is(err, ErrUnexpectedEnd) {
		text = r.join(text)
		m, end, err = r.messageOrBatch(text)
		scanned(end)
	}
	if err != nil && !errors.Is(err, ErrEnvelope) {
		fault := NewFault(text, err)
		fault.Cut = errors.Is(err, ErrUnexpectedEnd) && errors.Is(r.pending, io.EOF)
		return Message{}, fault
	}
	r.returned = text[:end]
	if rest := bytes.TrimSpace(text[end:]); len(rest) > 0 {
		r.rest = rest
	}
	if err != nil {
		return m, NewFault(text[:end], err)
	}
	return m, nil
}

func (r *Reader) messageOrBatch(text []byte) (m Message, end int, err error) {
	if text[0] != '[' {
		o := &r.outline
		o.text, o.count, o.used = text, 0, 0
		m, end, err = envelope(text, 0, cmp.Or(r.MaxDepth, maxDepth), o)
		m.Outline = o
		return m, end, err
	}
	if end, err = Skip(text, 0); err != nil {
		return m, end, err
	}
	return Message{Raw: text[:end]}, end, nil
}

// join adds lines to a value that is not closed until it is closed, cannot be JSON
// any more, or has reached joinLimit. A line that is itself a message ends the
// attempt and is kept for the next call.
func (r *Reader) join(text []byte) []byte {
	scanned(len(text))
	text = bytes.Clone(text) // the next line overwrites it
	open, ok := brackets(text)
	for checked := len(text); ok && open > 0 && len(text) < joinLimit; {
		next, err := r.line()
		if err != nil {
			r.pending = err
			return text
		}
		scanned(2 * len(next)) // by isMessage and brackets
		if isMessage(next) {
			r.unread = next
			return text
		}
		var more int
		more, ok = brackets(next)
		open += more
		text = append(append(text, ' '), next...)
		if len(text) < 2*checked {
			continue // checked only when its length has doubled, so that the work stays linear
		}
		scanned(len(text))
		if _, err := Skip(text, 0); !errors.Is(err, ErrUnexpectedEnd) {
			return text
		}
		checked = len(text)
	}
	return text
}

// brackets returns how many more brackets a line opens than it closes. ok is false
// if a string is open at the end: strings do not continue on the next line.
func brackets(line []byte) (open int, ok bool) {
	for i := 0; i < len(line); {
		switch line[i] {
		case '"':
			end, err := skipString(line, i)
			if err != nil {
				return open, false
			}
			i = end
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		i++
	}
	return open, true
}

// isMessage reports whether a line is itself a message, or a batch that begins with
// one.
func isMessage(line []byte) bool {
	i := space(line, 0)
	if i == len(line) || line[i] != '[' {
		_, err := Parse(line)
		return err == nil
	}
	if i = space(line, i+1); i == len(line) || line[i] != '{' {
		return false // not one level further, which would scan the line again for each level
	}
	scanned(len(line))
	_, _, err := envelope(line, i, maxDepth, nil)
	return err == nil && Valid(line)
}

// line returns the next line without its newline, as a slice of the buffer.
func (r *Reader) line() ([]byte, error) {
	if line := r.unread; line != nil {
		r.unread = nil
		return line, nil
	}
	if err := r.pending; err != nil {
		r.pending = nil
		return nil, err
	}
	for !r.whole() {
		if r.searched > r.max {
			return nil, r.discard()
		}
		if err := r.fill(); err != nil {
			if r.start == r.end || !errors.Is(err, io.EOF) {
				return nil, err
			}
			r.pending = err
			line := r.buf[r.start:r.end:r.end]
			r.start, r.searched = r.end, 0
			return r.trim(line), nil
		}
	}
	if r.searched > r.max {
		return nil, r.discard()
	}
	n := r.searched
	line := r.buf[r.start : r.start+n : r.start+n]
	r.start, r.searched = r.start+n+1, 0
	if n >= readChunk {
		r.expected = n + n/8
	}
	return r.trim(line), nil
}

// whole reports whether the next line is complete in the buffer. Its newline is then
// searched bytes after start.
func (r *Reader) whole() bool {
	at := r.start + r.searched
	if at < r.end && r.buf[at] == '\n' {
		return true
	}
	i := bytes.IndexByte(r.buf[at:r.end], '\n')
	if i < 0 {
		r.searched = r.end - r.start
		return false
	}
	r.searched += i
	return true
}

func (r *Reader) trim(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	for rest := line; ; {
		i := bytes.IndexByte(rest, '\r')
		if i < 0 {
			return line
		}
		rest[i] = ' ' // JSON has no CR except between tokens
		rest = rest[i+1:]
	}
}

func (r *Reader) fill() error {
	if r.start == r.end {
		r.reset()
	}
	r.Uncork() // first: growing copies all of a long line
	if r.end == len(r.buf) {
		r.grow()
	}
	if r.Idle != nil {
		r.Idle()
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		switch {
		case n > 0:
			if n >= busyRead {
				r.pipe.widen()
			}
			r.holding = true
			r.Cork.Delay()
			return nil
		case err != nil:
			r.pipe.release()
			r.held.Set(0)
			return err
		}
	}
	return io.ErrNoProgress
}

// reset empties the buffer, and returns it to the pool if it is large: waiting for a
// line needs only the small one.
func (r *Reader) reset() {
	if r.small == nil {
		r.small = make([]byte, readChunk)
	}
	if len(r.buf) > readChunk {
		giveBack(r.buf)
	}
	r.buf, r.start, r.end = r.small, 0, 0
	r.held.Set(0)
}

// grow makes room after the bytes that were read. It moves them to the front if that
// frees half the buffer. Otherwise it takes a buffer twice as large, at most one byte more
// than the longest line. Long lines tend to be followed by others as long: starting at the
// size of the last one saves growing step by step.
func (r *Reader) grow() {
	old, unread := r.buf, r.buf[r.start:r.end]
	if len(unread) > len(old)/2 {
		r.buf = largeBuffer(min(max(2*len(old), r.expected), r.max+1))
		r.held.Set(len(r.buf))
		if len(old) > readChunk {
			defer giveBack(old)
		}
	}
	r.end = copy(r.buf, unread)
	r.start = 0
}

// discard skips a line that is too long and reports it.
func (r *Reader) discard() error {
	line := r.buf[r.start:r.end]
	r.searched = 0
	fault := &Fault{TooBig: true, Err: fmt.Errorf("a line of more than %d bytes", r.max)}
	for {
		part, _, _ := bytes.Cut(line, []byte{'\n'})
		fault.Line = head(append(fault.Line, head(part)...))
		fault.End = tail(append(fault.End, tail(part)...))
		if len(part) < len(line) {
			r.start += len(part) + 1
			return fault
		}
		r.reset()
		if err := r.fill(); err != nil {
			r.pending = err
			return fault
		}
		line = r.buf[:r.end]
	}
}
