package mcptest

import (
	"io"
	"sync"
)

// Pipe returns two connected streams in memory: data written to one is read from the other. Writes do
// not block, so that one goroutine can write and then read. Closing an end closes both directions;
// data that was written before can still be read.
func Pipe() (a, b io.ReadWriteCloser) {
	x, y := newHalf(), newHalf()
	return &stream{x, y}, &stream{y, x}
}

type stream struct{ in, out *half }

func (s *stream) Read(data []byte) (int, error)  { return s.in.read(data) }
func (s *stream) Write(data []byte) (int, error) { return s.out.write(data) }

func (s *stream) Close() error {
	s.in.close()
	s.out.close()
	return nil
}

// half is one direction. It waits with a sync.Cond, which synctest understands.
type half struct {
	mu     sync.Mutex
	more   sync.Cond
	data   []byte
	closed bool
}

func newHalf() *half {
	h := &half{}
	h.more.L = &h.mu
	return h
}

func (h *half) read(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.data) == 0 && !h.closed {
		h.more.Wait()
	}
	n := copy(data, h.data)
	h.data = h.data[n:]
	if n == 0 && len(data) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (h *half) write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, io.ErrClosedPipe
	}
	h.data = append(h.data, data...)
	h.more.Broadcast()
	return len(data), nil
}

func (h *half) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.more.Broadcast()
}
