package aggregator

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/discover"
	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
)

// served is the current config with the catalogue and the fleet, which follow it.
type served struct {
	opts       Options
	log        *slog.Logger
	ctx        context.Context // ends with the aggregator
	work       *work.Group
	surfaces   exposed.Makers
	catalog    *catalog.Catalog
	fleet      *fleet.Fleet
	references *observe.References // to failures whose cause was kept from hosts
	changed    notify.Signal       // set when lists of hosts may have changed
	doubts     doubts

	lock  sync.RWMutex // held for writing while one config replaces another
	state atomic.Pointer[state]
}

func (sv *served) config() *schema.Config { return sv.state.Load().cfg }

// Tree returns the tree of the config, or one with a node for each server if the config has
// none; nil if no module has trees.
func (sv *served) Tree() surface.Tree {
	if seen := sv.state.Load().exposed.Whole.Tree; seen != nil {
		return seen.Tree
	}
	return nil
}

// A state is a config with the values made from it.
type state struct {
	cfg     *schema.Config
	exposed *exposed.Surfaces
	store   *listing.LoggingStore
	guards  approval.Guards            // nil if no tool needs approval
	policy  rule.Rules                 // nil without a policy
	stored  map[string]*catalog.Stored // what servers listed in earlier runs, by name
	end     context.CancelFunc         // ends the goroutines of this state; set by swap
}

// newState returns the state for a config. It does not change the current one.
func (sv *served) newState(cfg *schema.Config) (*state, error) {
	sv.opts.Redact.Add(cfg.Secrets()...)
	st := &state{cfg: cfg}
	var err error
	if st.policy, err = rule.Of(cfg); err != nil {
		return nil, err
	}
	if st.exposed, err = sv.surfaces.Of(cfg); err != nil {
		return nil, err
	}
	if sv.opts.Listings != nil {
		st.store = &listing.LoggingStore{Listings: store.Shared(cfg, sv.opts.Listings), Log: sv.log}
	} else {
		st.store = &listing.LoggingStore{Listings: store.Of(cfg, sv.opts.StoreDir), Log: sv.log}
	}
	st.stored = sv.loadStored(st)
	if sv.opts.Approvals != nil {
		st.guards = sv.opts.Approvals.Guards(cfg, sv.log)
	}
	return st, nil
}

// swap replaces the current state. A listing that comes meanwhile waits, and is dropped
// then if its server is gone.
func (sv *served) swap(st *state) {
	sv.lock.Lock()
	defer sv.lock.Unlock()
	var ctx context.Context
	ctx, st.end = context.WithCancel(sv.ctx)
	if before := sv.state.Swap(st); before != nil {
		before.end()
		for _, s := range before.cfg.Servers {
			if s.Off != nil {
				sv.catalog.Fail(s.Name, "")
			}
		}
	}
	for _, u := range sv.fleet.Set.Apply(st.cfg.Servers) {
		// An eager server keeps its old listing until it has started; a lazy one is
		// not known.
		if now := sv.fleet.Set.Get(u.Server.Name); now != nil && now.Server.Lazy() {
			sv.catalog.Put(u.Server.Name, nil)
		}
		sv.catalog.Fail(u.Server.Name, "") // the new upstream has not failed
	}
	sv.catalog.Declare(catalogServers(st))
	sv.catalog.DeclareProfiles(st.cfg.Profiles)
	sv.catalog.Remember(st.stored)
	for _, s := range st.cfg.Servers {
		if s.Off != nil {
			sv.catalog.Put(s.Name, nil)
			sv.catalog.Fail(s.Name, "it is off")
		}
	}
	if sv.opts.Listings != nil {
		sv.work.Go(func() { sv.followListings(ctx, st) })
	}
	sv.fleet.ForgetReplaced()
}

// catalogServers returns the servers of the config for the catalogue.
func catalogServers(st *state) []catalog.Server {
	cfg := st.cfg
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
			Guard:          approval.Of(st.guards, s.Name),
			Personal:       s.IsPersonal(),
			MaxOutputChars: results.LowerLimit(s.MaxOutputChars, cfg.Catalog.MaxResultChars),
			Aliases:        s.PathAliases,
			Overrides:      results.Overrides(s.ToolOverrides, cfg.Catalog.MaxResultChars),
		}
		if s.Off != nil { // it cannot be loaded, but a host that knows it can be told why
			entry.Lazy, entry.Note = false, "(off: "+s.Off.Why()+")"
		}
		servers = append(servers, entry)
	}
	return servers
}

// loadStored returns what the servers of a config listed in earlier runs.
func (sv *served) loadStored(st *state) map[string]*catalog.Stored {
	all := st.store.LoadAll(st.cfg.Servers)
	for _, server := range st.cfg.Servers {
		if stored := all[server.Name]; stored != nil && stored.AsksRoots && !fleet.Isolated(&server) && sv.opts.Cluster == nil {
			sv.fleet.Records.Get(server.Name, "").AsksRoots.Store(true)
		}
	}
	return all
}

// followListings puts the listings of other replicas into the catalogue, and has hosts
// notified, until ctx ends.
func (sv *served) followListings(ctx context.Context, st *state) {
	st.store.Follow(ctx, st.cfg.Servers, func(name string, stored *catalog.Stored) {
		before := sv.catalog.View()
		sv.lock.RLock()
		current := sv.state.Load() == st
		if current {
			sv.catalog.RememberServer(name, stored)
		}
		sv.lock.RUnlock()
		if current {
			sv.published("", before)
		}
	})
}

// noteStatus tells the catalogue why an upstream is not available and whether it wants a
// login, unless a new config has replaced it.
func (sv *served) noteStatus(u *lazy.Upstream, status lazy.Status) {
	sv.lock.RLock()
	defer sv.lock.RUnlock()
	if !sv.fleet.Set.Has(u) {
		return
	}
	switch status.State {
	case lazy.Evicted:
		if u.Owner == "" && u.Status().State == lazy.Evicted { // no new config has offered it again
			sv.catalog.Drop(status.Name)
		}
	case lazy.Lost:
		if u.Owner != "" && u.Server.IsPersonal() { // it may be what one user lacks
			return
		}
		sv.catalog.Fail(status.Name, sv.references.Reason(status.Err))
		if ask.WantsLogin(status.Err) {
			sv.catalog.Note(status.Name, "(run: dynmcp login "+status.Name+")")
		}
	case lazy.Ready:
		sv.catalog.Note(status.Name, "")
	}
}

// published logs problems that the catalogue did not have before, and has hosts notified. before is the
// view that a principal had; "" is for all.
func (sv *served) published(principal string, before *catalog.View) {
	known := map[string]bool{}
	conflicts, warnings := sv.problems(before)
	for _, w := range slices.Concat(conflicts, warnings) {
		known[w] = true
	}
	conflicts, warnings = sv.problems(sv.catalog.ViewFor(principal))
	for _, w := range conflicts {
		if !known[w] {
			sv.log.Error(w)
		}
	}
	for _, w := range warnings {
		if !known[w] {
			sv.log.Warn(w)
		}
	}
	sv.changed.Set()
}

// problems returns what is wrong with a view. conflicts are paths of the tree that cannot be
// called; warnings are about entries that are left out or have no effect.
func (sv *served) problems(view *catalog.View) (conflicts, warnings []string) {
	st := sv.state.Load()
	warnings = slices.Concat(view.Collisions(), view.Warnings(), discover.PinWarnings(st.cfg, view))
	if tree := st.exposed.Whole.Usual.Usual.Tree; tree != nil {
		var ofTree []string
		conflicts, ofTree = tree.Problems(view)
		warnings = append(warnings, ofTree...)
	}
	return conflicts, warnings
}
