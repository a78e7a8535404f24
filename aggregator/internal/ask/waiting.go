package ask

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/transports/host"
)

const (
	// InputWait is how long a call waits for its host's next request. People fill
	// in forms.
	InputWait = 10 * time.Minute
	// maxWaiting is how many calls of one upstream may wait. The oldest is given
	// up for one more, so that questions nobody answers do not take the place of
	// others: an upstream may ask 256 at a time.
	maxWaiting = 128
)

// A Call is one that may wait for input.
type Call interface {
	comparable
	Abandon(reason json.RawMessage) // nobody continues it
}

// Waiting are the calls that wait for the next request of their hosts, by the
// id in the state that the host has. Each is taken once: by that request, by its
// deadline, by the end of its session, or by a call for which there was no room.
type Waiting[C Call] struct {
	Work *work.Group

	mu   sync.Mutex
	byID map[string]waitingCall[C]
}

type waitingCall[C Call] struct {
	call     C
	upstream any
	by       *host.Request // which was answered with questions
	since    time.Time
	deadline *time.Timer
}

// Add gives a call of an upstream an id, whose questions answer r. oldest is a call of the
// same upstream that had to make room for it, if full.
func (w *Waiting[C]) Add(call C, upstream any, r *host.Request) (id string, oldest C, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = map[string]waitingCall[C]{}
	}
	others, first := 0, ""
	for id, other := range w.byID {
		if other.upstream == upstream {
			if others++; first == "" || other.since.Before(w.byID[first].since) {
				first = id
			}
		}
	}
	if others >= maxWaiting {
		oldest, full = w.takeLocked(first)
	}
	id = rand.Text()
	w.byID[id] = waitingCall[C]{call, upstream, r, time.Now(), time.AfterFunc(InputWait, func() {
		w.Work.Go(func() {
			if call, ok := w.Take(id); ok {
				call.Abandon(json.RawMessage(`"the host did not answer"`))
			}
		})
	})}
	return id, oldest, full
}

// Take returns the call of an id and forgets it; ok is false if there is none.
func (w *Waiting[C]) Take(id string) (call C, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.takeLocked(id)
}

func (w *Waiting[C]) takeLocked(id string) (call C, ok bool) {
	found, ok := w.byID[id]
	if ok {
		found.deadline.Stop()
		delete(w.byID, id)
	}
	return found.call, ok
}

// Abandon gives up those calls that which picks, of which it is also told the request that
// was answered with questions.
func (w *Waiting[C]) Abandon(reason json.RawMessage, which func(call C, by *host.Request) bool) {
	var picked []C
	w.mu.Lock()
	for id, c := range w.byID {
		if which(c.call, c.by) {
			w.takeLocked(id)
			picked = append(picked, c.call)
		}
	}
	w.mu.Unlock()
	for _, call := range picked {
		call.Abandon(reason)
	}
}
