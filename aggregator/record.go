package aggregator

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// A record is what is known in this run of a server, or of what one owner has of it. It
// stays when a new config replaces the upstream.
type record struct {
	entry  *record // of the server as all have it; the record itself if it is that
	queue  queue
	slots  queue        // of calls whose server is ready, where it has max_calls
	starts atomic.Int64 // how often it was connected

	// Of entries alone:

	asksRoots     atomic.Bool // hosts that share a run have an upstream for each set of roots
	bothEras      atomic.Bool // and one for each era, unless it is statelessOnly
	statelessOnly atomic.Bool
}

// records are the records by owner, "" for all, and the name of the server. The zero value
// is ready to use.
type records struct {
	mu sync.Mutex
	of map[string]map[string]*record
}

func (rs *records) get(server, owner string) *record {
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
		r.entry = cmp.Or(entry, r)
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
			return !r.queue.inUse() && !r.slots.inUse() && !inUse(server, owner)
		})
		if len(of) == 0 {
			delete(rs.of, owner)
		}
	}
}

// waiting returns how many calls wait for a slot of a server, for all owners.
func (rs *records) waiting(server string) (n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, of := range rs.of {
		if r := of[server]; r != nil {
			n += int(r.slots.length.Load())
		}
	}
	return n
}

// A peer is what an upstream talks to, over all its connections.
type peer struct {
	agg           *Aggregator
	upstream      *lazy.Upstream
	record        *record
	handshakeOnly atomic.Bool                     // its last connection made the initialize handshake
	speaksSSE     atomic.Bool                     // its transport was left open, and is HTTP with SSE
	askedEra      atomic.Pointer[transports.Era]  // in which another replica has it loaded now; nil while none has
	relatesTasks  atomic.Bool                     // that has tasks of the handshake era, which other messages name
	seenURIs      seenURIs                        // in its results
	rootsAsked    ask.Roots                       // its questions for the roots
	asksRoots     atomic.Bool                     // it has asked for them
	roots         atomic.Pointer[json.RawMessage] // that it is for, nil unless it is for a set of them
	since         atomic.Int64                    // when it was connected last, in nanoseconds of Unix time
	user          atomic.Pointer[principal]       // whose roots the upstream is for, nil of others
	calls         callsInFlight
	listing       *listing.Cache
}

func (a *Aggregator) peerOf(u *lazy.Upstream) *peer {
	if p, ok := a.peers.Load(u); ok {
		return p.(*peer)
	}
	p := &peer{agg: a, upstream: u, record: a.records.get(u.Server.Name, u.Owner)}
	p.listing = listing.NewCache(a.listings, u)
	p.rootsAsked.Work, p.rootsAsked.Conn = a.work, u.Conn
	known, _ := a.peers.LoadOrStore(u, p)
	return known.(*peer)
}

// dedicated returns what an owner has of a server, in the place of what another does not use.
func (a *Aggregator) dedicated(u *lazy.Upstream, owner string, idle time.Duration) (*lazy.Upstream, error) {
	own, gone, err := a.set.Own(u, owner, idle)
	if gone != nil {
		a.peers.Delete(gone)
	}
	return own, err
}

// disowned forgets upstreams whose owner has ended.
func (a *Aggregator) disowned(owner string) {
	for _, u := range a.set.Disown(owner) {
		a.peers.Delete(u)
	}
	a.records.drop(owner)
}

// forgetReplaced forgets the upstreams that are no longer part of the set.
func (a *Aggregator) forgetReplaced() {
	a.peers.Range(func(key, value any) bool {
		if u := key.(*lazy.Upstream); !a.set.Has(u) {
			a.peers.Delete(u)
			value.(*peer).record.slots.giveBack(0) // it may have another max_calls now
		}
		return true
	})
	a.records.sweep(func(server, owner string) bool { return a.set.Owned(server, owner) != nil })
}

// callsInFlight are the calls that an upstream has to answer, oldest first.
type callsInFlight struct {
	mu   sync.Mutex
	list []*forwardedCall
}

func (cs *callsInFlight) add(c *forwardedCall) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = append(cs.list, c)
}

func (cs *callsInFlight) remove(c *forwardedCall) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if i := slices.Index(cs.list, c); i >= 0 {
		cs.list = slices.Delete(cs.list, i, i+1)
	}
}

func (cs *callsInFlight) all() []*forwardedCall {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Clone(cs.list)
}
