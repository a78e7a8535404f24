package wire

// byReference is how long a piece must be to be kept as it is instead of being
// copied behind the others: copying costs more than another write then.
const byReference = 64 << 10

// A batch is what waits to be written: small pieces joined, long ones as they
// were given. Whatever its pieces came from, a message is one line here.
type batch struct {
	parts  [][]byte
	open   bool // the last part is ours to append to
	folded int  // so much of it is without line breaks between tokens
	size   int  // bytes of all parts
}

// add appends a piece of a message.
func (b *batch) add(piece []byte) {
	b.size += len(piece)
	if len(piece) < byReference {
		last := b.last()
		*last = append(*last, piece...)
		return
	}
	if b.open {
		b.fold()
	}
	if hasBreaks(piece) {
		b.size -= len(piece)
		piece = JoinLines(append([]byte(nil), piece...))
		b.size += len(piece)
	}
	b.parts = append(b.parts, piece)
	b.open = false
}

// addRequest appends a request, its head written in place.
func (b *batch) addRequest(id int64, method string, params [][]byte) {
	last := b.last()
	before := len(*last)
	*last = appendRequest(*last, id, method, hasParams(params))
	b.size += len(*last) - before
	if !hasParams(params) {
		return
	}
	for _, piece := range params {
		b.add(piece)
	}
	b.add(messageClose)
}

// last returns the part to append to.
func (b *batch) last() *[]byte {
	if !b.open {
		b.parts = append(b.parts, nil)
		b.open, b.folded = true, 0
	}
	return &b.parts[len(b.parts)-1]
}

// fold takes the line breaks out of what was appended last.
func (b *batch) fold() {
	last := b.last()
	folded := JoinLines((*last)[b.folded:])
	b.size -= len(*last) - b.folded - len(folded)
	*last = (*last)[:b.folded+len(folded)]
	b.folded = len(*last)
}

// end ends a message.
func (b *batch) end() {
	b.fold()
	last := b.last()
	*last = append(*last, '\n')
	b.size++
	b.folded++
}

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
