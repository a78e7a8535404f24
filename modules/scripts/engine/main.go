package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Name {
		main()
	}
}

// wornHeap is how much memory an engine may hold after a script and still be reused.
const wornHeap = 64 << 20

// main runs scripts until stdin ends.
func main() {
	debug.SetTraceback("none")
	debug.SetMaxStack(64 << 20)
	debug.SetMemoryLimit(Memory * 3 / 4) // collect garbage before Memory is reached
	runtime.GOMAXPROCS(1)
	e := &engine{in: make(chan Request, 64)}
	stdin := input()
	if err := limit(); err != nil {
		e.send(Event{Done: &Done{Failure: &Failure{Message: "the limits of scripts cannot be set: " + err.Error()}}})
		os.Exit(1)
	}
	go e.read(stdin)
	e.reportMemory(0)
	next := newScript(e)
	for request := range e.in {
		if request.Run == nil {
			continue // an answer to a script that has ended
		}
		done := next.run(*request.Run)
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		done.Worn = done.Worn || memory.HeapSys > wornHeap
		e.send(Event{Done: done})
		next = newScript(e)
	}
	os.Exit(0)
}

// reportMemory sends how much memory is used after each garbage collection, if that has changed much
// since last: collections are as often as the heap has doubled.
func (e *engine) reportMemory(last int64) {
	const much = 1 << 20
	runtime.SetFinalizer(&collected{}, func(*collected) {
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/goal:bytes"}}
		metrics.Read(samples)
		now := max(samples[0].Value.Uint64()-samples[1].Value.Uint64(), samples[2].Value.Uint64())
		if n := min(int64(now), Memory); n > last+much || n < last-much {
			last = n
			e.send(Event{Memory: n})
		}
		e.reportMemory(last)
	})
}

// A collected is garbage, whose finalizer runs after a collection.
type collected struct{ _ *int }

// read passes the requests of the parent to in.
func (e *engine) read(stdin *os.File) {
	defer close(e.in)
	lines := bufio.NewScanner(stdin)
	lines.Buffer(make([]byte, 64<<10), MaxLine)
	for lines.Scan() {
		var request Request
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			return
		}
		e.in <- request
	}
}
