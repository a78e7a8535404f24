package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/dop251/goja"
)

// setTimeout calls a function later.
func (s *script) setTimeout(call goja.FunctionCall) goja.Value {
	f, ok := goja.AssertFunction(call.Argument(0))
	if !ok {
		s.throw("setTimeout needs a function")
	}
	var args []goja.Value
	if len(call.Arguments) > 2 {
		args = call.Arguments[2:]
	}
	delay := time.Duration(min(max(call.Argument(1).ToInteger(), 0), int64(24*time.Hour/time.Millisecond))) * time.Millisecond
	s.timerID++
	t := timer{id: s.timerID, due: time.Now().Add(delay), call: func() error {
		_, err := f(goja.Undefined(), args...)
		return err
	}}
	i, _ := slices.BinarySearchFunc(s.timers, t, func(a, b timer) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) })
	s.timers = slices.Insert(s.timers, i, t)
	return s.vm.ToValue(t.id)
}

func (s *script) clearTimeout(call goja.FunctionCall) goja.Value {
	id := call.Argument(0).ToInteger()
	s.timers = slices.DeleteFunc(s.timers, func(t timer) bool { return t.id == id })
	return goja.Undefined()
}
