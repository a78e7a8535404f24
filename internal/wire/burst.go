package wire

// A Burst collects what is sent while the messages of one read are handled, so
// that many small messages leave in one write as they came in one. It belongs
// to one goroutine, which must call Flush before it waits for anything: see
// Reader.Idle.
type Burst struct{ writers []*Writer }

// Flush writes what was sent within the burst.
func (b *Burst) Flush() {
	for _, w := range b.writers {
		w.flush()
	}
	clear(b.writers)
	b.writers = b.writers[:0]
}

func (b *Burst) add(w *Writer) {
	for _, known := range b.writers {
		if known == w {
			return
		}
	}
	b.writers = append(b.writers, w)
}
