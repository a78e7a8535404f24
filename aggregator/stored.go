package aggregator

import (
	"dynmcp/catalog"
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
		}
		if stored != nil {
			all[server.Name] = stored
		}
	}
	return all
}

// keep has the last listing stored: one write at a time, and another after it if
// there was a newer listing meanwhile.
func (l *listing) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unkept = true
	if !l.keeping {
		l.keeping = l.agg.spawn(l.keepLast)
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
