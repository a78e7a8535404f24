package wire

// byReference is how long a piece must be to be kept as it is instead of being
// copied behind the others: copying costs more than another write then.
const byReference = 64 << 10

// A batch is what waits to be written: small pieces joined, long ones as they
// were given.
type batch struct {
	parts [][]byte
	open  bool // the last part is ours to append to
	size  int  // bytes of all parts
}

// add appends a piece of a message. Whatever it came from, a message is one
// line here.
func (b *batch) add(piece []byte) {
	if len(piece) >= byReference {
		if hasBreaks(piece) {
			piece = Fold(append([]byte(nil), piece...))
		}
		b.parts = append(b.parts, piece)
		b.size += len(piece)
		b.open = false
		return
	}
	if !b.open {
		b.parts = append(b.parts, nil)
		b.open = true
	}
	last := &b.parts[len(b.parts)-1]
	before := len(*last)
	*last = append(*last, piece...)
	*last = (*last)[:before+len(Fold((*last)[before:]))]
	b.size += len(*last) - before
}

func (b *batch) end() {
	b.add(newline)
	last := b.parts[len(b.parts)-1]
	last[len(last)-1] = '\n' // which Fold took for a break between tokens
}

var newline = []byte{'\n'}

// written drops n bytes from the front.
func (b *batch) written(n int) {
	b.size -= n
	for n > 0 && n >= len(b.parts[0]) {
		n -= len(b.parts[0])
		b.parts = b.parts[1:]
	}
	if n > 0 {
		b.parts[0] = b.parts[0][n:]
	}
}

// empty returns a batch for the next messages that reuses the memory of b,
// where that is one joined part of reasonable size.
func (b *batch) empty() batch {
	if len(b.parts) == 1 && b.open && cap(b.parts[0]) <= keptBuffer {
		b.parts[0] = b.parts[0][:0]
		return batch{parts: b.parts, open: true}
	}
	return batch{}
}
