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
	// InputWait is how long a call waits for its host's next request. People fill in
	// forms.
	InputWait = 10 * time.Minute
	// maxWaiting is how many calls of one upstream may wait. Another one replaces the oldest
	// call of the holder with the most, so that unanswered questions do not displace those of
	// others: an upstream may ask 256 at a time.
	maxWaiting = 128
)

// A Call is a call that may wait for input.
type Call interface {
	comparable
	Abandon(reason json.RawMessage) // it will not be continued
}

// Waiting are the calls that wait for the next request of their hosts, by the id in the state that
// the host has. Each is taken once: by that request, by its deadline, by the end of its session,
// or to make room for another call.
type Waiting[C Call] struct {
	Work *work.Group

	mu    sync.Mutex
	byID  map[string]waitingCall[C]
	added int // total; times are not unique on Windows
}

type waitingCall[C Call] struct {
	call     C
	upstream any
	holder   string
	by       *host.Request // the request that was answered with questions
	number   int           // in the order of Add
	deadline *time.Timer
}

// Add gives a call of an upstream an id; its questions answer r. spare is a call of the same
// upstream that was removed to make room, if full.
func (w *Waiting[C]) Add(call C, upstream any, holder string, r *host.Request) (id string, spare C, full bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byID == nil {
		w.byID = map[string]waitingCall[C]{}
	}
	if id := w.spareLocked(upstream, holder); id != "" {
		spare, full = w.takeLocked(id)
	}
	id = rand.Text()
	w.added++
	w.byID[id] = waitingCall[C]{call, upstream, holder, r, w.added, time.AfterFunc(InputWait, func() {
		w.Work.Go(func() {
			if call, ok := w.Take(id); ok {
				call.Abandon(json.RawMessage(`"the host did not answer"`))
			}
		})
	})}
	return id, spare, full
}

// spareLocked returns the id of the call to remove for one more of a holder, "" if there is
// room.
func (w *Waiting[C]) spareLocked(upstream any, holder string) string {
	all, count, oldest := 0, map[string]int{holder: 1}, map[string]string{}
	for id, c := range w.byID {
		if c.upstream != upstream {
			continue
		}
		all++
		count[c.holder]++
		if first, ok := oldest[c.holder]; !ok || c.number < w.byID[first].number {
			oldest[c.holder] = id
		}
	}
	if all < maxWaiting {
		return ""
	}
	most := holder
	for of := range oldest {
		if oldest[most] == "" || count[of] > count[most] {
			most = of
		}
	}
	return oldest[most]
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

// Abandon gives up the calls for which which returns true; by is the request that was answered with
// questions.
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
