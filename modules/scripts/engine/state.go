package engine

import (
	"fmt"
	"os"
	"time"

	"github.com/dop251/goja"
)

// An engine is the state of the process.
type engine struct {
	in   chan Request
	last int // id of the last call
}

// send writes an event. An engine without a parent ends.
func (e *engine) send(event Event) {
	if Write(os.Stdout, event) != nil {
		os.Exit(1)
	}
}

// A script is run once, in a runtime of its own.
type script struct {
	*engine
	Run
	vm      *goja.Runtime
	handles map[*goja.Object]Blob

	// Functions of the language that the API needs, from before the script could change them.
	newError, arrayFrom goja.Callable

	calls    int             // number of calls made
	inFlight map[int]*flight // calls that were sent
	waiting  []*flight       // calls that wait for one of those
	timers   []timer         // sorted by due
	timerID  int64
	printed  int             // bytes
	dropped  int             // bytes
	rejected []*goja.Promise // nothing awaits them
	threw    struct {
		value goja.Value // of the last throw statement
		at    *Failure
	}
}

// A flight is a call that was not answered yet.
type flight struct {
	Call
	raw             bool
	resolve, reject func(any) error
	at              *Failure // where the script made it
}

// A timer is a function that setTimeout was given.
type timer struct {
	id   int64
	due  time.Time
	call func() error
}

// must returns the value of a call, or throws what the call threw.
func (s *script) must(v goja.Value, err error) goja.Value {
	if err != nil {
		panic(err)
	}
	return v
}

// set defines a property without calling a setter of a prototype, or setting the prototype.
func (s *script) set(object *goja.Object, name string, value goja.Value) {
	_ = object.DefineDataProperty(name, value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

// throw throws a TypeError.
func (s *script) throw(format string, args ...any) {
	panic(s.vm.NewTypeError(fmt.Sprintf(format, args...)))
}
