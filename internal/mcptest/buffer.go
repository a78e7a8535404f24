package mcptest

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"time"
)

// buffer collects what one goroutine reads and others look at. It keeps the end.
type buffer struct {
	ended chan struct{} // closed when there will be no more

	mu      sync.Mutex
	data    []byte
	changed chan struct{} // closed at the next write; nil while nobody waits
}

func newBuffer() *buffer { return &buffer{ended: make(chan struct{})} }

// fill reads r to its end.
func (b *buffer) fill(r io.Reader) {
	defer close(b.ended)
	_, _ = io.Copy(b, r) // a reader closed under us is an end like any other
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

// next is closed when the buffer has changed. Take it before looking.
func (b *buffer) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// waitFor waits until the buffer holds text. It gives up at the end of the input
// and when the watchdog says so.
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
