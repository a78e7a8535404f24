package fleet

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
)

// A record holds the state of a server, or of an upstream of one owner, for a run. It
// stays when a new config replaces the upstream.
type record struct {
	Entry  *record // of the server as all have it; the record itself if it is that
	Queue  Queue
	Slots  Queue        // of calls whose server is ready, where it has max_calls
	Starts atomic.Int64 // how often it was connected

	// Of entries alone:

	AsksRoots     atomic.Bool // hosts that share a run have an upstream for each set of roots
	bothEras      atomic.Bool // and one for each era, unless it is statelessOnly
	statelessOnly atomic.Bool
}

// records are the records by owner, "" for all, and the name of the server. The zero value
// is ready to use.
type records struct {
	mu sync.Mutex
	of map[string]map[string]*record
}

// Get returns the record of what an owner has of a server.
func (rs *records) Get(server, owner string) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	entry := rs.getLocked(server, "", nil)
	if owner == "" {
		return entry
	}
	return rs.getLocked(server, owner, entry)
}

// getLocked returns the record of an owner, which is made with this entry, nil being itself.
func (rs *records) getLocked(server, owner string, entry *record) *record {
	if rs.of == nil {
		rs.of = map[string]map[string]*record{}
	}
	if rs.of[owner] == nil {
		rs.of[owner] = map[string]*record{}
	}
	r := rs.of[owner][server]
	if r == nil {
		r = &record{}
		r.Entry = cmp.Or(entry, r)
		rs.of[owner][server] = r
	}
	return r
}

// drop forgets what an owner has that has ended.
func (rs *records) drop(owner string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.of, owner)
}

// sweep forgets what owners have of servers, unless it is in use or calls wait for it.
func (rs *records) sweep(inUse func(server, owner string) bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for owner, of := range rs.of {
		if owner == "" {
			continue
		}
		maps.DeleteFunc(of, func(server string, r *record) bool {
			return !r.Queue.InUse() && !r.Slots.InUse() && !inUse(server, owner)
		})
		if len(of) == 0 {
			delete(rs.of, owner)
		}
	}
}

// Waiting returns how many calls wait for a slot of a server, for all owners.
func (rs *records) Waiting(server string) (n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, of := range rs.of {
		if r := of[server]; r != nil {
			n += int(r.Slots.Length.Load())
		}
	}
	return n
}
