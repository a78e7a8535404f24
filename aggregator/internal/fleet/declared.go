package fleet

import (
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
)

// Declarations are what upstreams are told of hosts.
type Declarations struct {
	Known chan struct{} // closed when first is set

	mu      sync.Mutex
	first   sessions.Declaration // of the first host that made one
	isSet   bool                 // first is
	eraOpen bool                 // first says for all hosts what they can do, but no host has spoken
}

// Note takes what a host said of itself.
func (ds *Declarations) Note(d sessions.Declaration) {
	ds.SetFirst(d, false)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.eraOpen {
		ds.first.Era, ds.eraOpen = d.Era, false
	}
}

// SetFirst makes d what upstreams are told of hosts, unless something is. eraOpen has the
// first host that speaks change the era.
func (ds *Declarations) SetFirst(d sessions.Declaration, eraOpen bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.eraOpen = ds.eraOpen || eraOpen
	if !ds.isSet {
		ds.first, ds.isSet = d, true
		close(ds.Known)
	}
}

// Get returns what upstreams are told of hosts: what the first one said of itself. ok is
// false before there is one.
func (ds *Declarations) Get() (d sessions.Declaration, ok bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.first, ds.isSet
}

// AbleToAll is what a run that many hosts share declares to upstreams: all that a
// host may be able to do. What the host of a call is not able to do is refused when
// it is asked.
const AbleToAll = `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`
