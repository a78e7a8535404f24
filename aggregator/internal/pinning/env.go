package pinning

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// An Env is the environment of pins.
type Env struct {
	Catalog   *catalog.Catalog
	Current   func() *Pins               // of the config that is served
	Config    sync.Locker                // held so that no other config is applied
	Published func(before *catalog.View) // the catalogue has changed
}

// Follow rereads the lock whenever it may have changed, until ctx ends.
func (e *Env) Follow(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			if p := e.Current(); p.Reread() {
				e.use(p)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Listed pins a server's listing, if nothing of it is pinned yet.
func (e *Env) Listed(ctx context.Context, server schema.Server) {
	p := e.Current()
	if g := p.Guard(server.Name); g == nil || g.Pinned() {
		return
	}
	if tools, ok := e.Catalog.Pinned(server.Name); ok && p.FirstUse(ctx, server, tools) {
		e.use(p)
	}
}

// use updates the catalogue with the lock's approvals.
func (e *Env) use(p *Pins) {
	before := e.Catalog.View()
	e.Config.Lock()
	current := e.Current() == p
	if current {
		e.Catalog.SetGuards(p.Guards())
	}
	e.Config.Unlock()
	if current {
		e.Published(before)
	}
}

// Refusal is the failure of a call whose tool differs from the approved one.
func Refusal(server, tool string) error {
	name := catalog.CommandWord(server + "/" + tool)
	return &transports.Failure{
		Upstream: server, Code: transports.CodeNotApproved, Outcome: transports.NotSent,
		Cause: errors.New(name + " is not listed as it was approved"),
		Hint:  fmt.Sprintf("a person sees what has changed with `dynmcp diff %s`, and approves it with `dynmcp approve %[1]s`", name),
	}
}

// Note returns a warning for a tool that may be called but differs from the approved one. first
// reports whether the warning is new.
func Note(t *catalog.Tool, first func(what string) bool) string {
	if t == nil || t.Unapproved == nil || !first("not approved: "+t.Name+" "+t.Unapproved.Now) {
		return ""
	}
	return fmt.Sprintf("[dynmcp: %s %s. Tell your user: `dynmcp diff %s` shows it, `dynmcp approve %[3]s` accepts it.]", t.Name, t.Unapproved, catalog.CommandWord(t.Server+"/"+t.Upstream))
}
