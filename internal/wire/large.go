package wire

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// largeBuffers are those that no Reader uses: as many are in memory as large lines are
// being read.
var largeBuffers sync.Pool

// largeBuffer returns a buffer of at least size bytes.
func largeBuffer(size int) []byte {
	ExpectQuiet()
	if b, _ := largeBuffers.Get().(*[]byte); b != nil && len(*b) >= size {
		return *b
	}
	return make([]byte, size)
}

func giveBack(buf []byte) { largeBuffers.Put(&buf) }

// largeInUse is the sum of what all Helds hold.
var largeInUse atomic.Int64

// LargeInUse returns how many bytes of memory the large messages take that are being
// read or handled, in this process.
func LargeInUse() int64 { return largeInUse.Load() }

// Held counts the memory of the message that one connection brings, for LargeInUse.
// What fits into a Reader's own buffer does not count.
type Held struct{ size atomic.Int64 }

// Set notes that the message takes size bytes now; 0 is that it was handled.
func (h *Held) Set(size int) { recount(h.size.Swap(int64(size)), int64(size)) }

// Add notes that the message takes n bytes more.
func (h *Held) Add(n int) {
	after := h.size.Add(int64(n))
	recount(after-int64(n), after)
}

func recount(before, after int64) {
	if before <= readChunk {
		before = 0
	}
	if after <= readChunk {
		after = 0
	}
	if before != after {
		largeInUse.Add(after - before)
	}
}

// quietAfter is how long no large line must have come for the memory that such lines
// took to be given back to the system.
const quietAfter = 2 * time.Second

var (
	busy    atomic.Bool // a large line came since the timer was armed
	waiting atomic.Bool // the timer is armed
)

// ExpectQuiet has the memory of what is garbage given back soon. It is called when a
// large line comes, and by who makes much garbage at once. By itself the runtime
// collects it when as much again is allocated, or after two minutes: a process that
// rests after a burst would keep all of it.
func ExpectQuiet() {
	busy.Store(true)
	if !waiting.Load() && waiting.CompareAndSwap(false, true) {
		arm()
	}
}

func arm() {
	busy.Store(false)
	time.AfterFunc(quietAfter, func() {
		if busy.Load() {
			arm()
			return
		}
		waiting.Store(false)
		runtime.GC() // what is in a pool goes with the second collection
		debug.FreeOSMemory()
	})
}
