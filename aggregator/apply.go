package aggregator

import (
	"context"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/pinning"
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/policy"
	"github.com/dynmcp/dynmcp/schema"
)

// A state is what a config says, worked out.
type state struct {
	cfg     *schema.Config
	exposed *exposed.All
	store   *listing.Store
	pins    *pinning.Pins
	policy  *policy.Rules              // nil if unset
	stored  map[string]*catalog.Stored // what servers listed in earlier runs, by name
	end     func()                     // ends what lasts until another has taken its place; set by swap
}

// Apply makes cfg the config that is served. Servers whose entries are the same
// stay as they are, with their calls in flight; the others take no more calls
// and end with those they have. What starts by itself is started, evicted
// servers are offered again, and hosts are told if they would read something
// new. After an error everything is as it was.
func (a *Aggregator) Apply(cfg *schema.Config) error {
	if cfg.SingleWrap != a.config().SingleWrap {
		return errors.New("a run with one command and a run with a config do not turn into each other")
	}
	st, err := a.newState(cfg)
	if err != nil {
		return err
	}
	a.swap(st)
	a.fleet.StartEager(false)
	a.changed.Set()
	return nil
}

// newState returns what a config says. It changes nothing that is served.
func (a *Aggregator) newState(cfg *schema.Config) (*state, error) {
	a.opts.Redact.Add(cfg.Secrets()...)
	st := &state{cfg: cfg}
	var err error
	if st.policy, err = policy.New(cfg.Policy); err != nil {
		return nil, err
	}
	if st.exposed, err = exposed.New(cfg); err != nil {
		return nil, err
	}
	if a.opts.Listings != nil {
		st.store = &listing.Store{Store: store.Shared(cfg, a.opts.Listings), Log: a.log}
	} else {
		st.store = &listing.Store{Store: store.Of(cfg, a.opts.StoreDir), Log: a.log}
	}
	st.stored = a.loadStored(st)
	st.pins = pinning.Of(cfg, a.opts.Definitions, a.opts.Package, a.log)
	return st, nil
}

// swap puts a state in the place of the one there is. A listing that comes
// meanwhile waits, and then is that of a server that is still there, or
// nothing.
func (a *Aggregator) swap(st *state) {
	a.reload.Lock()
	defer a.reload.Unlock()
	var ctx context.Context
	ctx, st.end = context.WithCancel(a.ctx)
	if before := a.state.Swap(st); before != nil {
		before.end()
		for _, s := range before.cfg.Servers {
			if s.Off != nil {
				a.catalog.Fail(s.Name, "")
			}
		}
	}
	for _, u := range a.set.Apply(st.cfg.Servers) {
		// A server that starts at once is shown as it was until it has; of a lazy
		// one nothing is known.
		if now := a.set.Get(u.Server.Name); now != nil && now.Server.Lazy() {
			a.catalog.Put(u.Server.Name, nil)
		}
		a.catalog.Fail(u.Server.Name, "") // the new one has not failed
	}
	a.catalog.Declare(catalogServers(st.cfg, st.pins))
	a.catalog.DeclareProfiles(st.cfg.Profiles)
	a.catalog.Remember(st.stored)
	for _, s := range st.cfg.Servers {
		if s.Off != nil {
			a.catalog.Put(s.Name, nil)
			a.catalog.Fail(s.Name, "it is off")
		}
	}
	if a.opts.Listings != nil {
		a.work.Go(func() { a.followListings(ctx, st) })
	}
	a.fleet.ForgetReplaced()
}

// catalogServers returns the servers of cfg as the catalogue wants them.
func catalogServers(cfg *schema.Config, held *pinning.Pins) []catalog.Server {
	var servers []catalog.Server
	for _, s := range cfg.Servers {
		if s.Disabled && s.Off == nil {
			continue
		}
		entry := catalog.Server{
			Name:           s.Name,
			Description:    s.Description,
			Lazy:           s.Lazy(),
			Single:         cfg.SingleWrap,
			Filter:         s.ToolFilter,
			Types:          cfg.Catalog.Definitions == schema.DefinitionsTypes,
			Guard:          held.Guard(s.Name),
			MaxOutputChars: results.Lower(s.MaxOutputChars, cfg.Catalog.MaxResultChars),
			Aliases:        s.PathAliases,
			Overrides:      results.Overrides(s.ToolOverrides, cfg.Catalog.MaxResultChars),
		}
		if s.Off != nil { // it cannot be loaded, but who knows of it can be told why
			entry.Lazy, entry.Note = false, "(off: "+s.Off.Why()+")"
		}
		servers = append(servers, entry)
	}
	return servers
}
