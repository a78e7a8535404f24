package mcptest

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
)

// A buffer collects the output that one goroutine reads, for others. It keeps the end.
type buffer struct {
	ended chan struct{} // closed at the end of the output

	mu      sync.Mutex
	data    []byte
	changed chan struct{} // closed at the next write; nil without waiters
}

func newBuffer() *buffer { return &buffer{ended: make(chan struct{})} }

// fill reads r to its end.
func (b *buffer) fill(r io.Reader) {
	defer close(b.ended)
	_, _ = io.Copy(b, r) // a closed reader is an end too
}

func (b *buffer) Write(data []byte) (int, error) {
	const keep = 4 << 20
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, data...)
	if len(b.data) > 2*keep {
		b.data = bytes.Clone(b.data[len(b.data)-keep:])
	}
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return len(data), nil
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.data)
}

// next returns a channel that is closed at the next write. Call it before reading the buffer.
func (b *buffer) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// waitFor waits until the buffer contains text. It returns false at the end of the output, and when
// the watchdog expires.
func (b *buffer) waitFor(text string) bool {
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	for {
		changed := b.next()
		if strings.Contains(b.String(), text) {
			return true
		}
		select {
		case <-changed:
		case <-b.ended:
			return strings.Contains(b.String(), text)
		case <-timer.C:
			return false
		}
	}
}
