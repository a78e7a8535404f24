package fleet

import (
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
)

// Declarations are the declarations of hosts that upstreams get.
type Declarations struct {
	Known chan struct{} // closed when first is set

	mu      sync.Mutex
	first   sessions.Declaration // of the first host that made one
	isSet   bool                 // first is
	eraOpen bool                 // first declares the capabilities for all hosts, but no host has connected
}

// Note records a host's declaration.
func (ds *Declarations) Note(d sessions.Declaration) {
	ds.SetFirst(d, false)
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if ds.eraOpen {
		ds.first.Era, ds.eraOpen = d.Era, false
	}
}

// SetFirst makes d the declaration for upstreams, unless there is one. eraOpen lets the first host
// that connects change the era.
func (ds *Declarations) SetFirst(d sessions.Declaration, eraOpen bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	ds.eraOpen = ds.eraOpen || eraOpen
	if !ds.isSet {
		ds.first, ds.isSet = d, true
		close(ds.Known)
	}
}

// Get returns the declaration for upstreams: that of the first host. ok is false before there is
// one.
func (ds *Declarations) Get() (d sessions.Declaration, ok bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.first, ds.isSet
}

// AbleToAll is declared to upstreams by a run that many hosts share: all capabilities that a host
// may have. A request that the host of a call does not support is refused when it is
// made.
const AbleToAll = `{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`
