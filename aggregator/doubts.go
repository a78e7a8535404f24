package aggregator

import (
	"math"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
)

// doubtFor is how long a failed start counts. A server that was mended without a change of the config
// is waited for again after that time.
const doubtFor = 24 * time.Hour

// Doubts are the servers for which sessions, of this run or an earlier one, waited in vain: it costs
// a host its patience once, not in each session. They are started like others, and hosts are told
// when their lists change.
type doubts struct {
	mu     sync.Mutex
	waited map[string]time.Duration // by server; the longest there is if the start failed
}

// remember reads how the last starts failed of servers without a stored listing, at the begin of a run.
func (d *doubts) remember(st *state, catalog *catalog.Catalog) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waited = map[string]time.Duration{}
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
			catalog.Fail(server.Name, f.Why+" (in an earlier session; it is being started again)")
		}
		d.waited[server.Name] = f.Waited
	}
}

// has reports whether a host that waits so long waited for u in vain.
func (d *doubts) has(u *lazy.Upstream, waits time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waited[u.Server.Name] >= waits
}

// add notes that a host waited so long for u in vain. It reports whether that is news.
func (d *doubts) add(u *lazy.Upstream, waited time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u.Owner != "" || d.waited[u.Server.Name] >= waited {
		return false
	}
	d.waited[u.Server.Name] = waited
	return true
}
