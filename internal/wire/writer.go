package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// ErrFull means that the peer does not read what is sent to it: the message was
// not queued.
var ErrFull = errors.New("the peer does not read: its queue is full")

// ErrClosed means that the writer was closed: the message was not queued.
var ErrClosed = errors.New("connection closed")

// ErrStalled means that the peer read nothing for too long.
var ErrStalled = errors.New("the peer does not read")

// keptBuffer is the largest buffer that is kept for the next messages.
const keptBuffer = 1 << 20

// A Writer sends messages, one per line, in the order of the calls. Sending never
// blocks. If the destination can be written to without blocking, the sender
// writes as much as it takes, which saves waking another goroutine, half of what
// a message costs. One goroutine writes the rest, all queued messages in one
// write.
type Writer struct {
	// Cork, if not nil, holds messages back while it is held. It is set before
	// the first message is sent.
	Cork *Cork

	dst    io.Writer
	direct *direct // nil if the destination cannot be written to without blocking
	stall  time.Duration
	wake   chan struct{} // holds one token while there may be work
	done   chan struct{} // closed when nothing more will be written

	nextDirty *Writer // in the list of Cork, which guards it

	mu      sync.Mutex
	queue   buffer
	spare   buffer        // becomes the queue when that is taken
	current buffer        // being written by whoever set writing
	writing bool          // someone owns dst and current
	left    bool          // a sender left the rest of current to the goroutine
	corked  bool          // in the list of Cork: its next Release writes the queue
	room    chan struct{} // nil or closed when current was written, for WaitBelow
	closing bool
	over    bool // done is closed
	err     error
}

// NewWriter returns a Writer on dst. A write that makes no progress for stall
// breaks it; 0 waits forever. Close must be called.
func NewWriter(dst io.Writer, stall time.Duration) *Writer {
	w := &Writer{
		dst:    dst,
		direct: newDirect(dst),
		stall:  stall,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	go w.run()
	return w
}

// Send queues one message made of the given pieces.
func (w *Writer) Send(parts ...[]byte) error { return w.SendWithin(0, parts...) }

// SendWithin queues one message unless more than limit bytes are already
// waiting; 0 is no limit. It returns ErrFull, ErrClosed, or what broke the
// writer.
func (w *Writer) SendWithin(limit int, parts ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(limit); err != nil {
		return err
	}
	for _, part := range parts {
		w.queue.add(part)
	}
	w.queuedLocked()
	return nil
}

// SendRequest is SendWithin for a request; its params are given in pieces and
// may be left out.
func (w *Writer) SendRequest(limit int, id int64, method string, params ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(limit); err != nil {
		return err
	}
	w.queue.addRequest(id, method, params)
	w.queuedLocked()
	return nil
}

// refusalLocked returns why nothing can be queued, or nil.
func (w *Writer) refusalLocked(limit int) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return ErrClosed
	case limit > 0 && w.queue.size+w.current.size > limit:
		return ErrFull
	}
	return nil
}

// queuedLocked has a message that was queued written: now, by the goroutine, or
// by the next Release of Cork.
func (w *Writer) queuedLocked() {
	w.queue.endMessage()
	switch {
	case w.direct == nil || w.writing:
		w.wakeLocked()
	case w.queue.size >= readChunk: // more than that a pipe does not take
		w.sendLocked()
	case w.corked:
	case w.Cork.add(w):
		w.corked = true
	default:
		w.sendLocked()
	}
}

// uncork writes what was held back, unless a write is under way: the queue comes
// next then.
func (w *Writer) uncork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = false
	if w.queue.size > 0 && !w.writing && !w.over {
		w.sendLocked()
	}
}

// sendLocked writes as much of the queue as is possible without blocking. The
// lock is not held over the write; the flag writing keeps others from dst.
func (w *Writer) sendLocked() {
	w.takeLocked()
	w.mu.Unlock()
	n := 0
	for _, part := range w.current.parts {
		written := w.direct.write(part)
		if n += written; written < len(part) {
			break
		}
	}
	w.mu.Lock()
	if n == w.current.size {
		w.wroteLocked()
	} else {
		w.current.discard(n)
		w.left = true
	}
	if w.left || w.queue.size > 0 || w.closing {
		w.wakeLocked()
	}
}

func (w *Writer) wakeLocked() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Waiting returns how many bytes wait to be written.
func (w *Writer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.size + w.current.size
}

// WaitBelow returns when at most limit bytes wait to be written, or nothing more
// will be written.
func (w *Writer) WaitBelow(limit int) {
	for {
		w.mu.Lock()
		if w.queue.size+w.current.size <= limit {
			w.mu.Unlock()
			return
		}
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-w.done:
			return
		}
	}
}

// Err returns the error that broke the writer, if one did.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Done is closed when nothing more will be written.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Close writes what is queued and returns when that is done or the writer broke;
// nothing can be sent afterwards. The goroutine has ended by then, unless it is
// in a write that nothing can interrupt.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closing = true
	w.wakeLocked()
	w.mu.Unlock()
	<-w.done
	return w.Err()
}

// Break drops what is not yet written: from now on every method returns err. A
// write in progress is interrupted if dst has SetWriteDeadline.
func (w *Writer) Break(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(err)
	w.deadline(time.Unix(1, 0))
}

func (w *Writer) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLocked(err)
}

// endLocked closes done, once; err is nil after Close.
func (w *Writer) endLocked(err error) {
	if !w.over {
		w.over, w.closing, w.err = true, true, err
		close(w.done)
	}
}

func (w *Writer) run() {
	defer func() {
		if r := recover(); r != nil {
			w.end(fmt.Errorf("internal error: %v", r))
		}
	}()
	for range w.wake {
		for {
			work, last := w.take()
			if last {
				w.end(nil)
				return
			}
			if !work {
				break
			}
			for _, part := range w.current.parts {
				if err := w.write(part); err != nil {
					w.end(err)
					return
				}
			}
			w.wrote()
		}
	}
}

// take reports whether there is something to write, which is in current then.
// While a sender writes there is not: it wakes the goroutine when it is done.
// last reports that nothing will follow.
func (w *Writer) take() (work, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return false, true
	case w.left:
		w.left = false
		return true, false
	case w.writing:
		return false, false
	case w.queue.size == 0:
		return false, w.closing
	}
	w.takeLocked()
	return true, false
}

func (w *Writer) takeLocked() {
	w.current, w.queue, w.spare = w.queue, w.spare, buffer{}
	w.writing = true
}

func (w *Writer) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wroteLocked()
	w.deadline(time.Time{}) // or the next direct write would fail at once
}

func (w *Writer) wroteLocked() {
	w.spare, w.current, w.writing = w.current.reset(), buffer{}, false
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// write restarts the stall time whenever the destination takes something, so
// that a slow reader does not count as a dead one.
func (w *Writer) write(part []byte) error {
	for len(part) > 0 {
		n, err := w.writePart(part[:min(len(part), readChunk)])
		if err != nil && (n == 0 || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return err
		}
		part = part[n:]
	}
	return nil
}

func (w *Writer) writePart(part []byte) (int, error) {
	w.mu.Lock()
	if w.over {
		defer w.mu.Unlock()
		return 0, w.err
	}
	bounded := w.stall <= 0 || w.deadline(time.Now().Add(w.stall))
	w.mu.Unlock()
	if !bounded {
		// A file that is not a pipe, or a stdout that was opened before us: the
		// write cannot be interrupted, but nobody has to wait for it.
		watchdog := time.AfterFunc(w.stall, func() { w.end(ErrStalled) })
		defer watchdog.Stop()
	}
	return w.dst.Write(part)
}

// deadline sets the deadline of writes and reports whether dst supports it.
func (w *Writer) deadline(t time.Time) bool {
	dst, ok := w.dst.(interface{ SetWriteDeadline(time.Time) error })
	return ok && dst.SetWriteDeadline(t) == nil
}
