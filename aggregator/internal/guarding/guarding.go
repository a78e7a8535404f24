// Package guarding keeps the catalogue current with what was approved of the servers of a run.
package guarding

import (
	"context"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/schema"
)

// An Env is the environment of guards.
type Env struct {
	Catalog *catalog.Catalog
	Config  sync.Locker // held so that no other config is applied
	Run     Run
}

// A Run has the config that is served.
type Run interface {
	Guards() approval.Guards        // of the config; may be nil
	Published(before *catalog.View) // the catalogue has changed
}

// Follow rereads what was approved whenever it may have changed, until ctx ends.
func (e *Env) Follow(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			if g := e.Run.Guards(); g != nil && g.Reread() {
				e.use(g)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Listed tells the guards what a server lists: they may approve its first listing.
func (e *Env) Listed(ctx context.Context, server schema.Server) {
	g := e.Run.Guards()
	if g == nil || g.Guard(server.Name) == nil {
		return
	}
	if tools, ok := e.Catalog.View().Definitions(server.Name); ok && g.Listed(ctx, server, tools) {
		e.use(g)
	}
}

// use updates the catalogue with guards that have changed.
func (e *Env) use(g approval.Guards) {
	before := e.Catalog.View()
	e.Config.Lock()
	current := e.Run.Guards() == g
	if current {
		e.Catalog.SetGuards(g)
	}
	e.Config.Unlock()
	if current {
		e.Run.Published(before)
	}
}

// Note returns a warning for a tool that may be called but differs from the approved one. first
// reports whether the warning is new.
func Note(t *catalog.Tool, first func(what string) bool) string {
	if t == nil || t.Unapproved == nil || !first("not approved: "+t.Name+" "+t.Unapproved.Now) {
		return ""
	}
	return fmt.Sprintf("[dynmcp: %s %s. %s.]", t.Name, t.Unapproved.Why, t.Unapproved.Remedy)
}
