package host

import (
	"testing"
	"testing/synctest"
)

// AwaitReceive waits while the messages received and held before the answer to initialize exceed the
// limit, or while too many messages wait for the control plane. It returns when the session ends.
func TestAwaitReceive(t *testing.T) {
	for _, test := range []struct {
		name  string
		set   func(*Session)
		waits bool
	}{
		{"nothing", func(*Session) {}, false},
		{"what may be kept", func(s *Session) { s.opening.Store(true); s.early, s.heldSize = maxEarly/2, maxEarly/2 }, false},
		{"more than may be kept", func(s *Session) { s.opening.Store(true); s.early, s.heldSize = maxEarly/2, maxEarly/2+1 }, true},
		{"as much, after the answer", func(s *Session) { s.early, s.heldSize = maxEarly, maxEarly }, false},
		{"what may wait for the control plane", func(s *Session) { s.control.waiting.Store(maxControl) }, false},
		{"more than may wait for it", func(s *Session) { s.control.waiting.Store(maxControl + 1) }, true},
		{"as much, at the end", func(s *Session) { s.control.waiting.Store(maxControl + 1); s.ending = true }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := NewSession("h1", &listEdge{}, SessionOptions{})
			test.set(s)
			went := false
			go func() {
				s.AwaitReceive()
				went = true
			}()
			synctest.Wait()
			if went == test.waits {
				t.Errorf("%s: AwaitReceive has returned: %t", test.name, went)
			}
			s.mu.Lock()
			s.ending = true
			s.room.Broadcast()
			s.mu.Unlock()
			synctest.Wait()
			if !went {
				t.Errorf("%s: AwaitReceive does not return at the end", test.name)
			}
		})
	}
}
