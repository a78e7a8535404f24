// Package fleet manages the upstreams of a run: their owners, their loading, and their state. It
// forwards unasked messages of upstreams to the right sessions. It sends no calls of hosts, but
// knows those in flight, to find the host for an upstream's request.
package fleet

import (
	"context"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/remote"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Dependencies are what a Fleet needs.
type Dependencies struct {
	Context     context.Context // ends with the run
	Log         *slog.Logger
	Observation observe.Reporter
	Work        *work.Group
	Catalog     *catalog.Catalog
	Sessions    *notify.Registry[*sessions.Session]
	TaskOwners  *taskowner.Owners
	Config      sync.Locker   // held while an upstream of the config is looked up and published
	Places      remote.Places // nil means that everything runs here
	Open        remote.Open
	Run         Run
	// ExtensionLists are fetched besides the lists of MCP.
	ExtensionLists []extension.List
	// SingleWrap reports that the run wraps one command.
	SingleWrap bool
	// Strict makes the failed start of an eager upstream fatal, by Run.Fatal.
	Strict bool
	// SkipBroken skips tools with broken definitions, if the server is one of the tree's own.
	SkipBroken bool
}

// A Run is what a Fleet belongs to.
type Run interface {
	listing.Run
	// Changed is called when the state of an upstream has changed.
	Changed(u *lazy.Upstream)
	// Connection returns options of the connection to an upstream.
	Connection(u *lazy.Upstream) upstream.ConnOptions
	// Entry returns the entry of a server as it is for the owner of an upstream.
	Entry(ctx context.Context, u *lazy.Upstream, server schema.Server) (schema.Server, error)
	// Entries returns what fills in the values that a principal keeps now, with one look at them.
	Entries(principal string) func(schema.Server) (schema.Server, error)
	// InProfile reports whether a server is in a profile of the config.
	InProfile(profile, server string) bool
	// Hider returns what the policy hides from a session; nil hides nothing.
	Hider(s *sessions.Session) catalog.Hider
	// Fatal ends the run.
	Fatal(err error)
}

// A Fleet is the upstreams of a run, with their listings and owners.
type Fleet struct {
	Dependencies
	Set       *lazy.Set
	Listings  *listing.Env
	Declared  Declarations
	Startup   Startup
	placer    remote.Placer
	Records   records
	Endpoints sync.Map // *lazy.Upstream to its *Endpoint
	Lists     Comparisons
	Names     Names
	followers Followers
}

// New returns a fleet without upstreams, which are added to Set.
func New(needs Dependencies) *Fleet {
	f := &Fleet{Dependencies: needs}
	f.Lists.fleet, f.Names.fleet = f, f
	f.Declared.Known, f.Startup.next = make(chan struct{}), make(chan struct{})
	f.placer = remote.Placer{Places: f.Places, Work: f.Work, Users: f}
	needed := func(u *lazy.Upstream) bool { return f.Of(u).hasSubscribers() }
	f.Set = lazy.NewSet(lazy.SetOptions{Load: f.load, Changed: f.Run.Changed, Needed: needed, Logger: f.Log})
	f.Listings = &listing.Env{Context: f.Context, Log: f.Log, Catalog: f.Catalog, Set: f.Set, Config: f.Config, Work: f.Work, Run: f.Run}
	return f
}

// Views returns the catalogue for the scope and the host of a session, without what the policy
// hides from it.
func (f *Fleet) Views(s *sessions.Session) *catalog.Views {
	views := f.Catalog.Views()
	switch {
	case s.Server != "":
		views = f.Catalog.Single(s.Server)
	case s.ProfileName != "":
		views = f.Catalog.Profile(s.ProfileName)
	}
	return views.With(f.Catalog.Own(s.User)).For(s.Able()).Hiding(f.Run.Hider(s))
}

// Single returns the only upstream of a session, nil if there are many.
func (f *Fleet) Single(s *sessions.Session) *lazy.Upstream {
	if s.Server != "" {
		return f.Set.Get(s.Server)
	}
	return f.Wrapped()
}

// Wrapped returns the upstream of a run that wraps one command, nil for any other run.
func (f *Fleet) Wrapped() *lazy.Upstream {
	if all := f.Set.All(); f.SingleWrap && len(all) == 1 {
		return all[0]
	}
	return nil
}

// Includes reports whether a server is in the scope of a session.
func (f *Fleet) Includes(s *sessions.Session, server string) bool {
	return (s.Server == "" || s.Server == server) && (s.ProfileName == "" || f.Run.InProfile(s.ProfileName, server))
}

// Get returns the entry of a server in the scope of a session, nil if there is none.
func (f *Fleet) Get(s *sessions.Session, server string) *lazy.Upstream {
	if !f.Includes(s, server) {
		return nil
	}
	return f.Set.Get(server)
}

// Upstreams returns the existing upstreams for a session, in config order.
func (f *Fleet) Upstreams(s *sessions.Session) (all []*lazy.Upstream) {
	for _, u := range f.Set.All() {
		if !f.Includes(s, u.Server.Name) {
			continue
		}
		if u = f.ExistingFor(s, u); u != nil {
			all = append(all, u)
		}
	}
	return all
}

// Sees reports whether messages of an upstream may be for a session.
func (f *Fleet) Sees(s *sessions.Session, u *lazy.Upstream) bool {
	if !f.Includes(s, u.Server.Name) {
		return false
	}
	owner, _ := f.owner(s, u)
	return u.Owner == owner
}

// IsOffered reports whether there is an upstream that was not evicted.
func IsOffered(u *lazy.Upstream) bool { return u != nil && u.Status().State != lazy.Evicted }
