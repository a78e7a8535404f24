package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrFull says that a peer does not take what is sent to it: the message was
// not queued.
var ErrFull = errors.New("the peer does not read: its queue is full")

// ErrClosed says that the writer was closed: the message was not queued.
var ErrClosed = errors.New("connection closed")

// keptBuffer is how large a buffer may be that waits for the next messages.
const keptBuffer = 1 << 20

// A Writer sends messages, one a line, in the order of the calls. Sending
// never blocks: one goroutine writes what is queued, as many messages a write
// as there are.
type Writer struct {
	dst   io.Writer
	stall time.Duration
	wake  chan struct{} // holds one token while there may be work
	done  chan struct{} // closed when the goroutine is gone

	mu      sync.Mutex
	queue   []byte
	room    chan struct{} // closed and replaced when the queue was written
	writing int           // bytes being written
	closing bool
	err     error
}

// NewWriter returns a Writer on dst. A write that makes no progress for stall
// breaks it, if dst has SetWriteDeadline. Close must be called.
func NewWriter(dst io.Writer, stall time.Duration) *Writer {
	w := &Writer{
		dst:   dst,
		stall: stall,
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		room:  make(chan struct{}),
	}
	go w.run()
	return w
}

// Send queues one message made of the given pieces.
func (w *Writer) Send(parts ...[]byte) error { return w.SendWithin(0, parts...) }

// SendWithin queues one message unless more than limit bytes are waiting
// already; 0 is no limit. It returns ErrFull, ErrClosed, or the error of the
// write that failed.
func (w *Writer) SendWithin(limit int, parts ...[]byte) error {
	w.mu.Lock()
	switch {
	case w.err != nil:
		defer w.mu.Unlock()
		return w.err
	case w.closing:
		w.mu.Unlock()
		return ErrClosed
	case limit > 0 && len(w.queue)+w.writing > limit:
		w.mu.Unlock()
		return ErrFull
	}
	for _, part := range parts {
		w.queue = append(w.queue, part...)
	}
	w.queue = append(w.queue, '\n')
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// WaitBelow returns when at most limit bytes wait to be written, or when
// nothing will be written any more.
func (w *Writer) WaitBelow(limit int) {
	for {
		w.mu.Lock()
		waiting, room := len(w.queue)+w.writing, w.room
		over := waiting <= limit || w.err != nil
		w.mu.Unlock()
		if over {
			return
		}
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

// Done is closed when nothing will be written any more.
func (w *Writer) Done() <-chan struct{} { return w.done }

// Close writes what is queued and returns when the goroutine is gone; nothing
// can be sent after it.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	<-w.done
	return w.Err()
}

func (w *Writer) run() {
	defer close(w.done)
	var spare []byte
	for range w.wake {
		for {
			batch, last := w.take(spare)
			if len(batch) == 0 {
				if last {
					return
				}
				break
			}
			err := w.write(batch)
			if w.wrote(err); err != nil {
				return
			}
			if spare = batch[:0]; cap(spare) > keptBuffer {
				spare = nil
			}
		}
	}
}

func (w *Writer) take(spare []byte) (batch []byte, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, w.closing // the caller keeps spare, so it must not become the queue
	}
	batch, w.queue = w.queue, spare[:0]
	w.writing = len(batch)
	return batch, w.closing
}

func (w *Writer) wrote(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writing = 0
	w.err = err
	close(w.room)
	w.room = make(chan struct{})
}

// write gives the destination the stall time anew for every part it takes, so
// that a slow reader is no dead one.
func (w *Writer) write(batch []byte) error {
	deadline, _ := w.dst.(interface{ SetWriteDeadline(time.Time) error })
	for len(batch) > 0 {
		part := batch[:min(len(batch), readChunk)]
		if deadline != nil && w.stall > 0 {
			// Files that are no pipes have no deadlines; then there is none.
			_ = deadline.SetWriteDeadline(time.Now().Add(w.stall))
		}
		n, err := w.dst.Write(part)
		if err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}
