package event

import (
	"testing"
	"time"
)

// counter counts calls.
type counter struct {
	Observers
	calls int
}

func (c *counter) Called(Call)                 { c.calls++ }
func (c *counter) Wants() (calls, params bool) { return true, false }

// Each observer gets an event, at the price of a loop.
func BenchmarkObservers(b *testing.B) {
	first, second := &counter{}, &counter{}
	all, end := Observers{first, second}, Call{Began: time.Now()}
	b.ReportAllocs()
	for b.Loop() {
		if calls, _ := all.Wants(); calls {
			all.Called(end)
		}
	}
	if first.calls != second.calls || first.calls == 0 {
		b.Errorf("%d and %d calls", first.calls, second.calls)
	}
}

// A redacted server leaves the original as it was.
func TestRedact(t *testing.T) {
	s := Server{Err: "secret", Sandbox: &Sandbox{Denied: 1, LastDenied: []string{"secret"}}}
	safe := s.Redact(func(string) string { return "safe" })
	if safe.Err != "safe" || safe.Sandbox.LastDenied[0] != "safe" || safe.Sandbox.Denied != 1 || s.Sandbox.LastDenied[0] != "secret" {
		t.Errorf("got %+v of %+v", safe, s)
	}
}
