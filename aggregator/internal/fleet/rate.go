package fleet

import (
	"fmt"
	"time"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/rate"
)

// A rateLimit is the rate of an entry, which all processes of its server share: a quota belongs to
// the key in the entry, not to a process. It is exact: no period has more starts of calls than the
// rate, whenever it begins. A token bucket would let twice as many start.
type rateLimit struct {
	Queue
	starts []time.Time // of at least the last rate.MaxCalls calls; guarded by Queue.mu
}

func (l *rateLimit) Applies(s *schema.Server) bool { return s.Rate.Calls > 0 || l.Length.Load() > 0 }

func (l *rateLimit) Take(t *Ticket, s *schema.Server) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.othersWaitLocked(t) || l.delayLocked(s.Rate) > 0 {
		return false
	}
	if s.Rate.Calls > 0 {
		if len(l.starts) == 2*rate.MaxCalls {
			l.starts = append(l.starts[:0], l.starts[rate.MaxCalls:]...)
		}
		l.starts = append(l.starts, time.Now())
	}
	return true
}

// GiveBack wakes the first call: a place is used up.
func (l *rateLimit) GiveBack(int) { l.Queue.GiveBack(0) }

func (l *rateLimit) Delay(s *schema.Server) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delayLocked(s.Rate), true
}

// delayLocked returns after what time the next call may start.
func (l *rateLimit) delayLocked(at rate.Rate) time.Duration {
	if at.Calls == 0 || len(l.starts) < at.Calls {
		return 0
	}
	return time.Until(l.starts[len(l.starts)-at.Calls].Add(at.Per))
}

func (l *rateLimit) Reached(s *schema.Server, within time.Duration) (hint string, cause error) {
	return `call again later, or raise its "rate" or "timeout"`,
		fmt.Errorf("its \"rate\" (%s) let no other call start for %v", s.Rate, within)
}
