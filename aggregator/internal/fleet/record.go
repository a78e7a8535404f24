package fleet

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"
)

// A record holds the state of a server, or of an owner's upstream, for a run. It survives the
// replacement of the upstream by a new config.
type record struct {
	Entry  *record // of the shared server; it may be the record itself
	Queue  Queue
	Starts atomic.Int64 // number of connections

	inFlight inFlightLimit
	rate     rateLimit // of an entry

	// For entries only:

	AsksRoots     atomic.Bool // shared hosts have an upstream per set of roots
	bothEras      atomic.Bool // and one per era, unless it is statelessOnly
	statelessOnly atomic.Bool
	regardsClient atomic.Bool // its lists may depend on the capabilities of hosts, see lists.go
}

// Limits returns the limits in the order in which a call takes its places. A place of the last one
// is used up when it is taken.
func (r *record) Limits() [2]Limit { return [...]Limit{&r.inFlight, &r.Entry.rate} }

// records are the records by owner, "" for all, and the name of the server. The zero value is ready
// to use.
type records struct {
	mu sync.Mutex
	of map[string]map[string]*record
}

// Get returns the record of an owner's upstream of a server.
func (rs *records) Get(server, owner string) *record {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	entry := rs.getLocked(server, "", nil)
	if owner == "" {
		return entry
	}
	return rs.getLocked(server, owner, entry)
}

// getLocked returns the record of an owner, created with this entry; nil means itself.
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

// drop removes the records of an owner that has ended.
func (rs *records) drop(owner string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.of, owner)
}

// sweep removes the records of owners, unless they are in use or calls wait.
func (rs *records) sweep(inUse func(server, owner string) bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for owner, of := range rs.of {
		if owner == "" {
			continue
		}
		maps.DeleteFunc(of, func(server string, r *record) bool {
			return !r.Queue.InUse() && !r.inFlight.InUse() && !inUse(server, owner)
		})
		if len(of) == 0 {
			delete(rs.of, owner)
		}
	}
}

// Waiting returns how many calls wait for limits of a server, for all owners.
func (rs *records) Waiting(server string) (n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, of := range rs.of {
		if r := of[server]; r != nil {
			n += int(r.inFlight.Length.Load() + r.rate.Length.Load())
		}
	}
	return n
}
