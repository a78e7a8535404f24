package wire

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// ErrFull means that the peer does not read its messages: the message was not queued.
var ErrFull = errors.New("the peer does not read: its queue is full")

// ErrClosed means that the writer was closed: the message was not queued.
var ErrClosed = errors.New("connection closed")

// ErrStalled means that the peer read nothing for too long.
var ErrStalled = errors.New("the peer does not read")

// A Writer sends messages, one per line, in the order of the calls; they contain no line
// breaks. Sending never blocks, and the arguments may be reused when the call returns. If
// the destination can be written to without blocking, the sender writes as much as it
// takes, and a large message without copying it. This saves waking another goroutine,
// which is half of the cost of a message. One goroutine writes the rest, which was copied
// into the queue.
type Writer struct {
	// Cork, if not nil, holds messages back while it is held. It is set before the first
	// message is sent.
	Cork *Cork

	dst    io.Writer
	direct *direct // nil if the destination cannot be written to without blocking
	stall  time.Duration
	most   int           // bytes in one write of the goroutine
	wake   chan struct{} // holds one token while there may be work
	done   chan struct{} // closed when nothing more will be written

	nextDirty *Writer // in the list of Cork, which guards it

	mu        sync.Mutex
	queue     queue
	spare     queue         // empty; becomes the queue when that is taken
	current   queue         // being written by the goroutine that set writing
	through   int           // bytes of a message that is being written without a copy
	writing   bool          // someone owns dst and current
	directing bool          // the owner is a sender, which owns direct as well
	head      []byte        // scratch
	left      bool          // a sender left the rest of current to the goroutine
	corked    bool          // in the list of Cork: its next Release writes the queue
	room      chan struct{} // closed when current is written; nil if nobody waits in WaitBelow
	closing   bool
	over      bool // done is closed
	err       error
}

// NewWriter returns a Writer on dst. A write that makes no progress for stall
// breaks it; 0 waits forever. Close must be called.
func NewWriter(dst io.Writer, stall time.Duration) *Writer {
	w := &Writer{
		dst:    dst,
		direct: newDirect(dst),
		stall:  stall,
		most:   blockSize,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	if !w.deadline(time.Time{}) {
		// The progress of a write cannot be observed, so each write must be small in case the
		// peer is slow. Pipes of Windows hold no more at a time.
		w.most = 4 << 10
	}
	go w.run()
	return w
}

// Send queues one message made of the given pieces.
func (w *Writer) Send(parts ...[]byte) error { return w.SendWithin(0, parts...) }

// SendWithin queues one message unless more than limit bytes are already waiting; 0 is no
// limit. It returns ErrFull, ErrClosed, or the error that broke the writer.
func (w *Writer) SendWithin(limit int, parts ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.refusalLocked(limit); err != nil {
		return err
	}
	w.sendLocked(parts, newline)
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
	w.head = appendRequest(w.head[:0], id, method, hasParams(params))
	w.queue.add(w.head)
	if hasParams(params) {
		w.sendLocked(params, requestEnd)
	} else {
		w.sendLocked(nil, newline)
	}
	return nil
}

// refusalLocked returns why nothing can be queued, or nil.
func (w *Writer) refusalLocked(limit int) error {
	switch {
	case w.err != nil:
		return w.err
	case w.closing:
		return ErrClosed
	case limit > 0 && w.waitingLocked() > limit:
		return ErrFull
	}
	return nil
}

func (w *Writer) waitingLocked() int { return w.queue.size + w.current.size + w.through }

var newline, requestEnd = []byte("\n"), []byte("}\n")

// sendLocked arranges for the rest of a message to be written after the queue: now, by
// the goroutine, or by the next Release of Cork.
func (w *Writer) sendLocked(parts [][]byte, end []byte) {
	size := len(end)
	for _, part := range parts {
		size += len(part)
	}
	if size >= blockSize && w.direct != nil && !w.writing {
		w.writeLocked(parts, end, size)
		return
	}
	for _, part := range parts {
		w.queue.add(part)
	}
	w.queue.add(end)
	switch {
	case w.direct == nil || w.writing:
		w.wakeLocked()
	case w.queue.size >= blockSize: // a pipe takes no more than that
		w.writeLocked(nil, nil, 0)
	case w.corked:
	case w.Cork.add(w):
		w.corked = true
	default:
		w.writeLocked(nil, nil, 0)
	}
}

// uncork writes the messages that were held back. If a write is under way, the queue is
// written after it.
func (w *Writer) uncork() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.corked = false
	if w.queue.size > 0 && !w.writing && !w.over {
		w.writeLocked(nil, nil, 0)
	}
}

// writeLocked writes as much of the queue, and of a message behind it, as is possible
// without blocking, and queues a copy of the rest of the message. size is the size of the
// message, which may be empty. The lock is not held during the write; the flag writing
// keeps others from dst.
func (w *Writer) writeLocked(parts [][]byte, end []byte, size int) {
	w.takeLocked()
	w.directing, w.through = true, size
	w.mu.Unlock()
	n := w.direct.write(&w.current, parts, end)
	w.mu.Lock()
	w.directing, w.through = false, 0
	if w.over {
		w.direct.pipe.release()
	}
	if n == w.current.size+size {
		w.wroteLocked()
	} else {
		sent := max(0, n-w.current.size) // of the message
		w.current.discard(n - sent)
		for _, part := range parts {
			skipped := min(sent, len(part))
			sent -= skipped
			w.current.add(part[skipped:])
		}
		w.current.add(end[min(sent, len(end)):])
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
	return w.waitingLocked()
}

// WaitBelow returns when at most limit bytes wait to be written, or nothing more
// will be written.
func (w *Writer) WaitBelow(limit int) {
	for {
		w.mu.Lock()
		if w.waitingLocked() <= limit {
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

// Break drops everything not yet written; from now on every method returns err. A
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
		if w.direct != nil && !w.directing {
			w.direct.pipe.release()
		}
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
			// A part is released when it is written; nobody else uses current.
			for part := w.current.first(); part != nil; part = w.current.first() {
				if err := w.write(part); err != nil {
					w.end(err)
					return
				}
				w.mu.Lock()
				w.current.discard(len(part))
				w.mu.Unlock()
			}
			w.wrote()
		}
	}
}

// take reports whether there is something to write, which is then in current. While a
// sender writes, there is nothing: it wakes the goroutine when it is done. last reports that
// nothing will follow.
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
	w.current, w.queue, w.spare = w.queue, w.spare, queue{}
	w.writing = true
}

func (w *Writer) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wroteLocked()
	w.deadline(time.Time{}) // or the next direct write would fail at once
}

func (w *Writer) wroteLocked() {
	w.current.reset()
	w.spare, w.current, w.writing = w.current, queue{}, false
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// write restarts the stall time whenever the destination takes something, so
// that a slow reader does not count as a dead one.
func (w *Writer) write(part []byte) error {
	for len(part) > 0 {
		n, err := w.writePart(part[:min(len(part), w.most)])
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
