package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dop251/goja"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// maxCallStack is how deep function calls may nest. Unwinding native functions takes time that is
// quadratic in the depth.
const maxCallStack = 3000

// newScript prepares a runtime, before there is a script for it.
func newScript(e *engine) *script {
	s := &script{engine: e, vm: goja.New(), handles: map[*goja.Object]Blob{}, inFlight: map[int]*flight{}}
	s.vm.SetMaxCallStackSize(maxCallStack)
	s.install()
	return s
}

// run runs a script to its end.
func (s *script) run(r Run) (done *Done) {
	s.Run = r
	s.setGlobals()
	began := used()
	limitCPU(began + s.CPU + time.Second)
	stop := s.watch(began + s.CPU)
	defer stop()
	defer func() {
		if p := recover(); p != nil {
			done = s.failed(p)
		}
		done.Dropped = s.dropped
	}()
	program, failure := compile(r.Source)
	if failure != nil {
		return &Done{Failure: failure}
	}
	f, ok := goja.AssertFunction(s.must(s.vm.RunProgram(program)))
	if !ok {
		panic(errors.New("the script is no function"))
	}
	promise := s.must(f(goja.Undefined())).Export().(*goja.Promise)
	if !s.settle(promise) {
		return &Done{Failure: &Failure{Message: "the script waits for a promise that nothing settles"}}
	}
	if promise.State() == goja.PromiseStateRejected {
		return &Done{Failure: s.thrown(promise.Result())}
	}
	return s.returned(promise.Result())
}

// settle waits until a promise is settled. It returns false if nothing will do that.
func (s *script) settle(p *goja.Promise) bool {
	for p.State() == goja.PromiseStatePending {
		if !s.wait() {
			return false
		}
	}
	return true
}

// maxReturned is the largest value that a script may return, in JSON.
const maxReturned = 16 << 20

// returned ends a script with its value, and waits for the promises in it. A value of only images
// and blobs is left out. A rejected promise that nothing awaited is an error.
func (s *script) returned(v goja.Value) *Done {
	e := &encoder{script: s, limit: maxReturned, waits: true}
	for again := !absent(v); again; again = e.pending != nil {
		e = &encoder{script: s, limit: maxReturned, waits: true}
		if err := s.vm.Try(func() { e.encode(v) }); err != nil {
			failure := s.thrown(err.Value())
			failure.Message = "the value cannot be returned: " + failure.Message
			return &Done{Failure: failure}
		}
		if e.pending != nil && !s.settle(e.pending) {
			return &Done{Failure: &Failure{Message: "the value has a promise that nothing settles"}}
		}
		if e.pending != nil && e.pending.State() == goja.PromiseStateRejected {
			return &Done{Failure: s.thrown(e.pending.Result())}
		}
	}
	if len(s.rejected) > 0 {
		failure := s.thrown(s.rejected[0].Result())
		failure.Message += " (nothing awaits this promise)"
		return &Done{Failure: failure}
	}
	done := &Done{Blobs: e.blobs}
	if !absent(v) && !s.onlyHandles(v) {
		done.Value = e.text
	}
	return done
}

// onlyHandles reports whether a value is a handle, or an array of nothing else.
func (s *script) onlyHandles(v goja.Value) bool {
	o, ok := v.(*goja.Object)
	if !ok {
		return false
	}
	if _, ok := s.handles[o]; ok {
		return true
	}
	if o.ClassName() != "Array" {
		return false
	}
	names := o.Keys()
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		item, _ := o.Get(name).(*goja.Object)
		_, handle := s.handles[item]
		return !handle
	})
}

// thrown describes a value that a script threw.
func (s *script) thrown(v goja.Value) *Failure {
	const most = 4 << 10
	f := &Failure{Message: s.format(v, most)}
	if len(f.Message) > most {
		f.Message = strings.ToValidUTF8(f.Message[:most], "") + " …"
	}
	o, ok := v.(*goja.Object)
	if !ok || o.ClassName() != "Error" {
		f.Message = "the script threw " + f.Message
		if s.threw.value != nil && s.threw.value.StrictEquals(v) {
			f.Line, f.Column = s.threw.at.Line, s.threw.at.Column
		}
		return f
	}
	_ = s.vm.Try(func() {
		if stack := o.Get("stack"); stack != nil {
			f.Line, f.Column = position(stack.String())
		}
	})
	if m := undefinedName().FindStringSubmatch(f.Message); m != nil && (&servers{s}).named(m[1]) != "" {
		f.Message += ": write tools." + m[1]
	}
	return f
}

var undefinedName = lazyregexp.New(`^ReferenceError: ([\w$]+) is not defined$`)

// failed describes a panic: an error that the script could not catch, or a fault of the engine,
// which is then replaced.
func (s *script) failed(p any) *Done {
	err, _ := p.(error)
	if e, ok := errors.AsType[*goja.Exception](err); ok {
		return &Done{Failure: s.thrown(e.Value())}
	}
	if e, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		return &Done{Failure: at(e.Stack(), fmt.Sprintf("RangeError: more than %d functions have called each other", maxCallStack))}
	}
	if e, ok := errors.AsType[*goja.InterruptedError](err); ok {
		return &Done{Failure: at(e.Stack(), fmt.Sprintf("the script was stopped: it used %v of processor time", s.CPU)), Worn: true}
	}
	return &Done{Failure: &Failure{Message: fmt.Sprintf("the engine failed: %v", p)}, Worn: true}
}

// wait waits for an answer or a timer, and runs the code that waits for it. It returns false if
// there is neither.
func (s *script) wait() bool {
	if len(s.inFlight) == 0 && len(s.timers) == 0 {
		return false
	}
	var due <-chan time.Time
	sleeps := false
	if len(s.timers) > 0 {
		left := time.Until(s.timers[0].due)
		clock := time.NewTimer(left)
		defer clock.Stop()
		due = clock.C
		sleeps = len(s.inFlight) == 0 && left > shortSleep
	}
	if sleeps {
		s.send(Event{Sleeps: true})
	}
	select {
	case request, ok := <-s.in:
		if !ok {
			panic(errors.New("dynmcp has ended"))
		}
		if request.Answer != nil {
			s.handleAnswer(*request.Answer)
		}
	case <-due:
		if sleeps {
			s.send(Event{})
		}
		s.callTimer()
	}
	return true
}

// shortSleep is how long a script may wait for a timer without giving up its place.
const shortSleep = 50 * time.Millisecond

// callTimer calls the function of the first timer.
func (s *script) callTimer() {
	first := s.timers[0]
	s.timers = s.timers[1:]
	if err := first.call(); err != nil {
		panic(err)
	}
}

// watch interrupts a script that has used its processor time, so that the error says where it
// was. If that is impossible, the kernel ends the process a second later.
func (s *script) watch(until time.Duration) (stop func()) {
	var watcher sync.WaitGroup
	done := make(chan struct{})
	watcher.Go(func() {
		for {
			left := until - used()
			if left <= 0 {
				s.vm.Interrupt(nil)
				return
			}
			select {
			case <-done:
				return
			case <-time.After(max(left/2, 5*time.Millisecond)): // the garbage collector uses processor time too
			}
		}
	})
	return func() { close(done); watcher.Wait() }
}
