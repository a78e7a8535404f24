package wire

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// largeBuffers is the pool of unused large buffers. A Reader uses one while it reads a large
// line.
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

// largeInUse is the sum of all MemoryCounters.
var largeInUse atomic.Int64

// LargeInUse returns the number of bytes of memory taken by the large messages that this
// process is reading or handling.
func LargeInUse() int64 { return largeInUse.Load() }

// MemoryCounter counts the memory of a connection's current message, for LargeInUse. A message
// that fits into a Reader's own buffer does not count.
type MemoryCounter struct{ size atomic.Int64 }

// Set records that the message now takes size bytes; 0 means that it was handled.
func (c *MemoryCounter) Set(size int) {
	if size <= readChunk {
		size = 0
	}
	after := int64(size)
	if before := c.size.Swap(after); before != after {
		largeInUse.Add(after - before)
	}
}

// quietAfter is the time without large lines after which their memory is returned to the
// system.
const quietAfter = 2 * time.Second

var (
	busy    atomic.Bool // a large line came since the timer was armed
	waiting atomic.Bool // the timer is armed
)

// ExpectQuiet arranges for garbage to be returned to the system soon. It is called when a
// large line arrives, and after other work that leaves much garbage. Otherwise the runtime
// would collect it when as much again was allocated, or after two minutes, and a process
// that is idle after a burst would keep all of it.
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
		runtime.GC() // a pool is emptied by the second collection
		debug.FreeOSMemory()
	})
}
