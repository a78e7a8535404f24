package aggregator

import (
	"context"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/catalog"
)

// loadStored returns what the servers of a config listed in earlier runs.
func (a *Aggregator) loadStored(st *state) map[string]*catalog.Stored {
	all := st.store.LoadAll(st.cfg.Servers)
	for _, server := range st.cfg.Servers {
		if stored := all[server.Name]; stored != nil && stored.AsksRoots && !fleet.Isolated(&server) && a.opts.Place == nil {
			a.fleet.Records.Get(server.Name, "").AsksRoots.Store(true)
		}
	}
	return all
}

// followListings has the catalogue know what other replicas list of the servers of a
// config, until ctx ends, and hosts told.
func (a *Aggregator) followListings(ctx context.Context, st *state) {
	st.store.Follow(ctx, st.cfg.Servers, func(name string, stored *catalog.Stored) {
		before := a.catalog.View()
		a.reload.RLock()
		current := a.state.Load() == st
		if current {
			a.catalog.RememberServer(name, stored)
		}
		a.reload.RUnlock()
		if current {
			a.installed(before)
		}
	})
}
