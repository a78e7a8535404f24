package fleet

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// An Endpoint is our end of an upstream, over all its connections.
type Endpoint struct {
	fleet         *Fleet
	Upstream      *lazy.Upstream
	Record        *record
	handshakeOnly atomic.Bool                     // its last connection made the initialize handshake
	speaksSSE     atomic.Bool                     // its transport was unspecified, and is HTTP with SSE
	AskedEra      atomic.Pointer[transports.Era]  // era in which another replica requested it; nil if none did
	relatesTasks  atomic.Bool                     // it has tasks of the handshake era, to which other messages refer
	RootsAsked    ask.Roots                       // its questions for the roots
	asksRoots     atomic.Bool                     // it has asked for them
	roots         atomic.Pointer[json.RawMessage] // the roots that it is for, nil unless it is for a set of them
	Since         atomic.Int64                    // time of the last connection, in nanoseconds of Unix time
	user          atomic.Pointer[string]          // the user whose roots it is for, nil for others
	dropped       atomic.Int64                    // notifications
	claimedBy     atomic.Pointer[string]          // the session whose host was asked for its roots, nil if none was; of an entry's upstream
	keptFor       atomic.Pointer[string]          // the owner of these roots, nil while they are unknown
	Calls         callsInFlight
	Listing       *listing.Cache
}

// Of returns the endpoint of an upstream.
func (f *Fleet) Of(u *lazy.Upstream) *Endpoint {
	if p, ok := f.Endpoints.Load(u); ok {
		return p.(*Endpoint)
	}
	p := &Endpoint{fleet: f, Upstream: u, Record: f.Records.Get(u.Server.Name, u.Owner)}
	p.Listing = listing.NewCache(f.Listings, u, ListsTo(u))
	p.RootsAsked.Work, p.RootsAsked.Of = f.Work, u
	known, _ := f.Endpoints.LoadOrStore(u, p)
	return known.(*Endpoint)
}

// Dedicated returns an owner's upstream of a server, in place of an unused one of another owner.
func (f *Fleet) Dedicated(u *lazy.Upstream, owner string, idle time.Duration) (*lazy.Upstream, error) {
	own, gone, err := f.Set.Dedicate(u, owner, idle)
	if gone != nil {
		f.Endpoints.Delete(gone)
		if principal := ListsTo(gone); principal != "" {
			f.Catalog.PutFor(principal, gone.Server.Name, nil)
		}
	}
	return own, err
}

// removeOwner removes upstreams whose owner has ended.
func (f *Fleet) removeOwner(owner string) {
	for _, u := range f.Set.RetireDedicated(owner) {
		f.Endpoints.Delete(u)
	}
	f.Records.drop(owner)
}

// ForgetReplaced removes the upstreams that are no longer part of the set.
func (f *Fleet) ForgetReplaced() {
	f.Endpoints.Range(func(key, value any) bool {
		if u := key.(*lazy.Upstream); !f.Set.Has(u) {
			f.Endpoints.Delete(u)
			for _, l := range value.(*Endpoint).Record.Limits() { // they may be others now
				l.GiveBack(0)
			}
		}
		return true
	})
	f.Records.sweep(func(server, owner string) bool { return f.Set.Dedicated(server, owner) != nil })
}

// callsInFlight are the unanswered calls to an upstream, oldest first.
type callsInFlight struct {
	Mu   sync.Mutex
	list []*call.Flight
}

// Add adds the newest call.
func (cs *callsInFlight) Add(c *call.Flight) {
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	cs.list = append(cs.list, c)
}

// Remove removes an ended call, and returns how many are left.
func (cs *callsInFlight) Remove(c *call.Flight) (left int) {
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	if i := slices.Index(cs.list, c); i >= 0 {
		cs.list = slices.Delete(cs.list, i, i+1)
	}
	return len(cs.list)
}

// All returns the calls, oldest first.
func (cs *callsInFlight) All() []*call.Flight {
	cs.Mu.Lock()
	defer cs.Mu.Unlock()
	return slices.Clone(cs.list)
}
