package aggregator

import (
	"context"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/kv"
)

// What servers list is kept between runs: read when a config is applied, and written
// after each listing, beside all else. What cannot be read or written is logged, and
// costs nothing but that.

// loadStored returns what the servers of a config listed in earlier runs.
func (a *Aggregator) loadStored(st *state) map[string]*catalog.Stored {
	all := map[string]*catalog.Stored{}
	for _, server := range st.cfg.Servers {
		if server.Disabled {
			continue
		}
		stored, err := st.store.Load(server)
		if err != nil {
			a.log.Warn("what a server listed in an earlier run is not used", "upstream", server.Name, "err", err)
			if errors.Is(err, kv.ErrUnavailable) {
				break // nor those of the others: they come when the state can be reached, see watchListings
			}
		}
		if stored != nil {
			if stored.AsksRoots && !isolated(&server) && a.opts.Place == nil {
				a.records.get(server.Name, "").asksRoots.Store(true)
			}
			all[server.Name] = stored
		}
	}
	return all
}

// watchListings has the catalogue know what other replicas list of the servers of a
// config, until ctx ends, and hosts told.
func (a *Aggregator) watchListings(ctx context.Context, st *state) {
	names := map[string]string{} // by key
	for _, server := range st.cfg.Servers {
		if !server.Disabled {
			names[store.Key(server)] = server.Name
		}
	}
	for ctx.Err() == nil {
		err := st.store.Watch(ctx, func(key string, stored *catalog.Stored, err error) {
			name, ok := names[key]
			if !ok {
				return
			}
			if err != nil {
				a.log.Warn("a record of what servers list is broken: it is written again when the server is listed", "upstream", name, "key", key, "err", err)
				return
			}
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
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			a.log.Warn("what other replicas list is not watched, trying again", "err", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// keep has the last listing stored: one write at a time, and another after it if
// there was a newer listing meanwhile.
func (l *listing) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unkept = true
	if !l.keeping {
		l.keeping = l.agg.work.Go(l.keepLast)
	}
}

func (l *listing) keepLast() {
	for {
		l.mu.Lock()
		if !l.unkept {
			l.keeping = false
			l.mu.Unlock()
			return
		}
		l.unkept = false
		last := l.last
		l.mu.Unlock()
		err := l.agg.state.Load().store.Keep(l.upstream.Server, last)
		switch {
		case err == nil:
		case l.agg.storeFailed.Swap(true):
			l.agg.log.Debug("a listing is not kept", "upstream", l.upstream.Server.Name, "err", err)
		default:
			l.agg.log.Warn("a listing is not kept: this server, and maybe others, will not be known before it is started", "upstream", l.upstream.Server.Name, "err", err)
		}
	}
}
