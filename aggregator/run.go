package aggregator

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/scope"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/store"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/rule"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A run is the aggregator for the rooms below it. It implements the interfaces in which they say
// what they need: fleet.Run, listing.Run, guarding.Run, scope.Run, judge.Served, forward.Sessions.
type run struct{ *Aggregator }

// Connection implements fleet.Run.
func (a run) Connection(u *lazy.Upstream) upstream.ConnOptions {
	opts := upstream.ConnOptions{
		Info:    upstream.Info{Name: "dynmcp", Version: a.opts.Version},
		Logger:  a.log,
		Redact:  a.opts.Redact,
		Env:     a.opts.Launcher.Env(a.config(), u.Server.Name),
		Adapter: a.opts.Adapter,
		Mark:    func(h http.Header) { a.opts.Launcher.Mark(u.Server.Name, h) },
		Tap:     a.opts.Tap,
		Cork:    &a.cork,
	}
	if a.opts.Logins != nil {
		opts.Login = a.opts.Logins.For(u.Server, principalFor(u))
	}
	return opts
}

// principalFor returns the user whose login an upstream takes, "" for that of the user who runs
// dynmcp.
func principalFor(u *lazy.Upstream) string {
	if !u.Server.Credentials.User {
		return ""
	}
	principal, _ := fleet.PrincipalOf(u) // Entry refuses one that is of nobody
	return principal
}

// Entry implements fleet.Run.
func (a run) Entry(_ context.Context, u *lazy.Upstream, server schema.Server) (schema.Server, error) {
	if !u.Server.IsPersonal() {
		return server, nil
	}
	principal, ok := fleet.PrincipalOf(u)
	if !ok || a.opts.Logins == nil {
		return server, &transports.Failure{
			Upstream: server.Name, Code: transports.CodeAuthRequired, Outcome: transports.NotSent,
			Cause: errors.New("it is called with the credentials of a user, and this is for none"), Hint: "call it as a user",
		}
	}
	return a.opts.Logins.Entries(principal)(server)
}

// Entries implements fleet.Run.
func (a run) Entries(principal string) func(schema.Server) (schema.Server, error) {
	return a.opts.Logins.Entries(principal)
}

// Changed logs and publishes a new state of an upstream. It implements fleet.Run.
func (a run) Changed(u *lazy.Upstream) {
	status := u.Status()
	a.noteStatus(u, status)
	switch status.State {
	case lazy.Evicted:
		a.log.Warn("evicted", "upstream", status.Name, "err", status.Err)
	case lazy.Lost:
		a.log.Warn("lost", "upstream", status.Name, "err", status.Err)
	case lazy.Ready:
		a.log.Info("ready", "upstream", status.Name)
	}
	if !status.FailedAt.IsZero() && status.Err != nil && u.Owner == "" && status.State != lazy.Loading { // its start has ended
		a.work.Go(func() {
			a.state.Load().store.NoteFailure(u.Server, store.Failure{Why: a.opts.Redact.String(status.Err.Error())})
		})
	}
	a.changed.Set()
}

func (a run) InProfile(name, server string) bool {
	p, ok := a.config().Profiles[name]
	return ok && profile.Has(p, server)
}

func (a run) Hider(s *sessions.Session) catalog.Hider {
	if hidden := rule.HiddenFrom(a.Policy(), s.User); hidden != nil && !s.Replica {
		return hidden
	}
	return nil
}

func (a run) Fatal(err error) { a.cancel(&FatalError{Err: err}) }

// Guards and Published implement guarding.Run; Listed, Refreshed and Keep implement listing.Run.

func (a run) Guards() approval.Guards { return a.state.Load().guards }

func (a run) Published(before *catalog.View) { a.published("", before) }

func (a run) Listed(u *lazy.Upstream, before *catalog.View) {
	principal, server := fleet.ListsTo(u), u.Server.Name
	a.published(principal, before)
	if !a.observation.HearListings() {
		return
	}
	if known, ok := before.Definitions(server); ok {
		tools, _ := a.catalog.ViewFor(principal).Definitions(server)
		a.observation.Listed(server, known, tools)
	}
}

func (a run) Refreshed(u *lazy.Upstream, changed map[string]bool) { a.fleet.NotifyReplicas(u, changed) }

func (a run) Keep(u *lazy.Upstream, l *catalog.Listing) {
	if fleet.ListsTo(u) != "" { // the store and what is approved are for those who run dynmcp
		return
	}
	a.guarding.Listed(a.ctx, u.Server)
	a.state.Load().store.KeepListing(u.Server, cmp.Or(a.catalog.Listed(u.Server.Name), l))
}

func (a run) Surfaces() *exposed.Surfaces { return a.state.Load().exposed }

// What follows implements judge.Served.

func (a run) Policy() rule.Rules                 { return a.state.Load().policy }
func (a run) OnChange() string                   { return a.config().Catalog.OnChange }
func (a run) Guard(server string) approval.Guard { return approval.Of(a.Guards(), server) }
func (a run) Offered(server string) bool         { return fleet.IsOffered(a.set.Get(server)) }

func (a run) Settling(s scope.Scope, server string) bool {
	return wait{session: session{s, a.Aggregator}, server: server, least: callWait}.isPending()
}

func (a run) UnknownTool(s scope.Scope, name string) string {
	return surface.UnknownTool(session{s, a.Aggregator}, name)
}

func (a run) UnknownServer(s scope.Scope, name string) string {
	return surface.UnknownServer(session{s, a.Aggregator}, name)
}
