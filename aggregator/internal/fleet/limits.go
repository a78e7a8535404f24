package fleet

import (
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/schema"
)

// A Limit holds back calls to a server that is ready. Those over it wait in its queue, in the order
// of their requests. A new limit is a type here and a line of limits.
type Limit interface {
	// Join adds a call to the queue.
	Join(number int64) *Ticket
	// Applies reports whether a server has the limit, or calls wait since it had.
	Applies(s *schema.Server) bool
	// Take takes a place for a call, unless the limit is reached or another call waits before this
	// one. t is nil for a call that does not wait.
	Take(t *Ticket, s *schema.Server) bool
	// GiveBack returns places, and wakes the first call.
	GiveBack(places int)
	// InUse reports whether calls wait or have places.
	InUse() bool
	// Delay returns after what time there may be a place if no call ends before.
	Delay(s *schema.Server) (d time.Duration, ok bool)
	// Reached says what held back a call for a time, and what the user can do.
	Reached(s *schema.Server, within time.Duration) (hint string, cause error)
}

// An inFlightLimit is max_calls of a process: its places are those of calls in flight.
type inFlightLimit struct{ Queue }

func (l *inFlightLimit) Applies(s *schema.Server) bool { return s.MaxCalls > 0 || l.Length.Load() > 0 }

func (l *inFlightLimit) Take(t *Ticket, s *schema.Server) bool { return l.Queue.Take(t, s.MaxCalls) }

func (l *inFlightLimit) Delay(*schema.Server) (time.Duration, bool) { return 0, false }

func (l *inFlightLimit) Reached(s *schema.Server, within time.Duration) (hint string, cause error) {
	return `call again when others have ended, or raise its "max_calls" or "timeout"`,
		fmt.Errorf("as many calls as its \"max_calls\" (%d) were in flight for %v", s.MaxCalls, within)
}
