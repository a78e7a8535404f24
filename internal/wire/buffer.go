package wire

// byReference is the size from which a piece is queued as it is instead of being
// copied behind the others: from there on copying costs more than another write.
const byReference = 64 << 10

// A buffer holds messages that wait to be written: small pieces joined, long ones
// as they were given. Whatever the pieces look like, each message is one line.
type buffer struct {
	parts  [][]byte
	open   bool // the last part is ours to append to
	joined int  // that many bytes of it have no line breaks between tokens
	size   int  // bytes of all parts
}

// add appends a piece of a message.
func (b *buffer) add(piece []byte) {
	b.size += len(piece)
	if len(piece) < byReference {
		last := b.last()
		*last = append(*last, piece...)
		return
	}
	if b.open {
		b.joinLines()
	}
	if hasBreaks(piece) {
		b.size -= len(piece)
		piece = JoinLines(append([]byte(nil), piece...))
		b.size += len(piece)
	}
	b.parts = append(b.parts, piece)
	b.open = false
}

// addRequest appends a request, whose head is written in place.
func (b *buffer) addRequest(id int64, method string, params [][]byte) {
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
func (b *buffer) last() *[]byte {
	if !b.open {
		b.parts = append(b.parts, nil)
		b.open, b.joined = true, 0
	}
	return &b.parts[len(b.parts)-1]
}

// joinLines takes the line breaks out of what was appended last.
func (b *buffer) joinLines() {
	last := b.last()
	joined := JoinLines((*last)[b.joined:])
	b.size -= len(*last) - b.joined - len(joined)
	*last = (*last)[:b.joined+len(joined)]
	b.joined = len(*last)
}

// endMessage completes the line.
func (b *buffer) endMessage() {
	b.joinLines()
	last := b.last()
	*last = append(*last, '\n')
	b.size++
	b.joined++
}

// discard drops n bytes from the front.
func (b *buffer) discard(n int) {
	b.size -= n
	for n > 0 && n >= len(b.parts[0]) {
		n -= len(b.parts[0])
		b.parts = b.parts[1:]
	}
	if n > 0 {
		b.parts[0] = b.parts[0][n:]
	}
}

// reset returns an empty buffer that reuses the memory of b if that is one
// joined part of reasonable size.
func (b *buffer) reset() buffer {
	if len(b.parts) == 1 && b.open && cap(b.parts[0]) <= keptBuffer {
		b.parts[0] = b.parts[0][:0]
		return buffer{parts: b.parts, open: true}
	}
	return buffer{}
}
