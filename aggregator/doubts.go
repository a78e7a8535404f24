package aggregator

import (
	"math"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
)

// doubtFor is how long a failed start counts: whoever mends a server without telling dynmcp
// waits for it again a day later.
const doubtFor = 24 * time.Hour

// Doubts are the servers for which sessions, of this run or an earlier one, waited in vain: it costs
// a host its patience once, not in each session. They are started like others, and hosts are told
// when their lists change.
type doubts struct {
	mu     sync.Mutex
	waited map[string]time.Duration // by server; the longest there is if the start failed
}

// remember reads how the last starts failed of servers without a stored listing, at the begin of a run.
func (sv *served) remember(st *state) {
	sv.doubts.mu.Lock()
	defer sv.doubts.mu.Unlock()
	sv.doubts.waited = map[string]time.Duration{}
	for _, server := range st.cfg.Servers {
		if server.Disabled || server.Lazy() || st.stored[server.Name] != nil {
			continue
		}
		f := st.store.Failure(server)
		if f.Why == "" || time.Since(f.At) > doubtFor {
			continue
		}
		if f.Waited == 0 {
			f.Waited = math.MaxInt64
			sv.catalog.Fail(server.Name, f.Why+" (in an earlier session; it is being started again)")
		}
		sv.doubts.waited[server.Name] = f.Waited
	}
}

// isDoubted reports whether a host as patient as that of w waited for u in vain. What is about one server
// waits for it all the same.
func (w wait) isDoubted(u *lazy.Upstream) bool {
	d := &w.session.agg.doubts
	d.mu.Lock()
	defer d.mu.Unlock()
	return w.server == "" && w.session.Single() == nil && d.waited[u.Server.Name] >= w.session.StartupWait(w.least)
}

// note stores that w waited in vain for the servers that are still starting.
func (d *doubts) note(w wait) {
	waited := w.session.StartupWait(w.least)
	var slow []schema.Server
	w.starting(func(u *lazy.Upstream) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if u.Owner == "" && d.waited[u.Server.Name] < waited {
			d.waited[u.Server.Name] = waited
			slow = append(slow, u.Server)
		}
		return true // none ends the iteration
	})
	if len(slow) == 0 {
		return
	}
	st := w.session.agg.state.Load()
	w.session.agg.work.Go(func() {
		for _, server := range slow {
			st.store.NoteFailure(server, store.Failure{Why: "it had not listed its tools " + waited.String() + " after its start", Waited: waited})
		}
	})
}
