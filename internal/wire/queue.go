package wire

import (
	"slices"
	"sync"
)

// blockSize is the size of the blocks in which messages wait to be written: what a
// pipe takes at a time, unless it was widened.
const blockSize = 64 << 10

type block [blockSize]byte

// blocks are those that no queue uses.
var blocks = sync.Pool{New: func() any { return new(block) }}

// A queue holds bytes that wait to be written. Its memory is blocks of the pool, which
// get back there as soon as they are written: a burst leaves no buffers behind.
type queue struct {
	blocks []*block
	start  int // that many bytes of the first block are written
	end    int // that many of the last one are used
	size   int // bytes that wait
}

// add appends a copy of a piece of a message.
func (q *queue) add(piece []byte) {
	q.size += len(piece)
	for len(piece) > 0 {
		if len(q.blocks) == 0 || q.end == blockSize {
			if len(q.blocks) == 1<<20/blockSize {
				ExpectQuiet()
			}
			q.blocks = append(q.blocks, blocks.Get().(*block))
			q.end = 0
		}
		n := copy(q.blocks[len(q.blocks)-1][q.end:], piece)
		q.end += n
		piece = piece[n:]
	}
}

// appendTo appends the parts that wait to parts, in order.
func (q *queue) appendTo(parts [][]byte) [][]byte {
	for i, b := range q.blocks {
		part := b[:]
		if i == len(q.blocks)-1 {
			part = part[:q.end]
		}
		if i == 0 {
			part = part[q.start:]
		}
		parts = append(parts, part)
	}
	return parts
}

// first returns the part that is to be written next, nil if absent.
func (q *queue) first() []byte {
	switch len(q.blocks) {
	case 0:
		return nil
	case 1:
		return q.blocks[0][q.start:q.end]
	}
	return q.blocks[0][q.start:]
}

// discard drops n bytes from the front.
func (q *queue) discard(n int) {
	q.size -= n
	for len(q.blocks) > 0 {
		part := len(q.first())
		if n < part {
			q.start += n
			return
		}
		n -= part
		blocks.Put(q.blocks[0])
		q.blocks, q.start = slices.Delete(q.blocks, 0, 1), 0
	}
	q.end = 0
}

// reset drops everything, and keeps the slice of blocks for the next ones.
func (q *queue) reset() {
	for i, b := range q.blocks {
		blocks.Put(b)
		q.blocks[i] = nil
	}
	*q = queue{blocks: q.blocks[:0]}
}
