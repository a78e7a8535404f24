package wire

import (
	"slices"
	"sync"
)

// blockSize is the size of the blocks in which messages wait to be written: the capacity
// of a pipe that was not widened.
const blockSize = 64 << 10

type block [blockSize]byte

// blocks is the pool of unused blocks.
var blocks = sync.Pool{New: func() any { return new(block) }}

// A queue holds bytes that wait to be written, in blocks of the pool. A block returns to the
// pool as soon as it is written: a burst leaves no buffers behind.
type queue struct {
	blocks []*block
	start  int // number of bytes of the first block that are written
	end    int // number of bytes of the last block that are used
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

// appendTo appends the parts of a queue from which nothing was discarded to parts, in order.
func (q *queue) appendTo(parts [][]byte) [][]byte {
	for i, b := range q.blocks {
		part := b[:]
		if i == len(q.blocks)-1 {
			part = part[:q.end]
		}
		parts = append(parts, part)
	}
	return parts
}

// first returns the part that is written next, nil if the queue is empty.
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

// reset drops everything but keeps the slice for the next blocks.
func (q *queue) reset() {
	for i, b := range q.blocks {
		blocks.Put(b)
		q.blocks[i] = nil
	}
	*q = queue{blocks: q.blocks[:0]}
}
