// Package pinning applies the lock of approved tools to the servers of one config: it gives the
// catalogue their guards, rereads a changed lock, and pins the listing of a server at its first
// use.
package pinning

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// Pins are the pins of one config. Nil is a config without pins.
type Pins struct {
	files    pins.Files
	blocks   map[string]bool // of the servers with pins, by name
	packages Packages
	log      *slog.Logger

	mu      sync.Mutex
	text    []byte // of the lock, as it was read
	problem error  // of reading it
	guards  map[string]*pins.Guard
	failed  bool // a failure to pin was logged
}

// Packages knows what servers run.
type Packages interface {
	// Package returns the package of a server and its version, "" if they are unknown.
	Package(ctx context.Context, server schema.Server) string
}

// Of returns the pins of a config, nil if pins are off for all servers: then nothing is read.
// Definitions are stored in the given directory; "" stores none.
func Of(cfg *schema.Config, definitions string, packages Packages, log *slog.Logger) *Pins {
	p := &Pins{files: pins.Files{Lock: pins.FileOf(cfg.Path), Definitions: definitions}, blocks: map[string]bool{}, packages: packages, log: log}
	for _, s := range cfg.Servers {
		if s.IsPinned() {
			p.blocks[s.Name] = s.Pins == schema.PinsBlock
		}
	}
	if len(p.blocks) == 0 {
		return nil
	}
	p.Reread()
	return p
}

// Guard returns the guard of a server, nil if it has none.
func (p *Pins) Guard(server string) *pins.Guard {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guards[server]
}

// Guards returns the guards by server.
func (p *Pins) Guards() map[string]*pins.Guard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.guards
}

// Reread rereads the lock, and reports whether it has changed.
func (p *Pins) Reread() (changed bool) {
	if p == nil {
		return false
	}
	lock, text, err := p.files.Read()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guards != nil && bytes.Equal(text, p.text) && fmt.Sprint(err) == fmt.Sprint(p.problem) {
		return false
	}
	if err != nil {
		p.log.Error("the lock of approved tools cannot be read: no tool of a server with \"pins\": \"block\" is shown", "err", err)
	}
	book := pins.NewBook(lock, err)
	p.problem, p.text, p.guards = err, text, make(map[string]*pins.Guard, len(p.blocks))
	for name, blocks := range p.blocks {
		p.guards[name] = book.Guard(name, blocks)
	}
	return true
}

// FirstUse pins a server's listing if nothing of it is pinned and no approval is required. It reports
// whether it did.
func (p *Pins) FirstUse(ctx context.Context, server schema.Server, tools []pins.Tool) (pinned bool) {
	guard := p.Guard(server.Name)
	if guard == nil || guard.Blocks() || guard.Pinned() || guard.Broken() != nil {
		return false
	}
	runs := p.packages.Package(ctx, server)
	err := p.files.Keep(tools)
	if err == nil {
		err = p.files.Update(func(l pins.Lock) {
			if l[server.Name] == nil {
				l.Set(server.Name, runs, tools)
			}
		})
	}
	p.mu.Lock()
	again := p.failed
	p.failed = p.failed || err != nil
	p.mu.Unlock()
	switch {
	case err == nil:
		p.log.Info("tools pinned at their first listing", "upstream", server.Name, "tools", len(tools))
		return p.Reread()
	case !again:
		p.log.Warn("tools are not pinned: there will be no warning when they change", "upstream", server.Name, "err", err)
	}
	return false
}

// An Env is the environment of pins.
type Env struct {
	Catalog *catalog.Catalog
	Config  sync.Locker // held so that no other config is applied
	Run     Run
}

// A Run has the config that is served.
type Run interface {
	Pins() *Pins
	Published(before *catalog.View) // the catalogue has changed
}

// Follow rereads the lock whenever it may have changed, until ctx ends.
func (e *Env) Follow(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
			if p := e.Run.Pins(); p.Reread() {
				e.use(p)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Listed pins a server's listing, if nothing of it is pinned yet.
func (e *Env) Listed(ctx context.Context, server schema.Server) {
	p := e.Run.Pins()
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
	current := e.Run.Pins() == p
	if current {
		e.Catalog.SetGuards(p.Guards())
	}
	e.Config.Unlock()
	if current {
		e.Run.Published(before)
	}
}

// NotApproved is the failure of a call whose tool differs from the approved one.
func NotApproved(server, tool string) error {
	name := catalog.CommandWord(server + "/" + tool)
	return &transports.Failure{
		Upstream: server, Code: transports.CodeNotApproved, Outcome: transports.NotSent,
		Cause: errors.New(name + " is not listed as it was approved"),
		Hint:  fmt.Sprintf("a person sees what has changed with `dynmcp diff %s`, and approves it with `dynmcp approve %[1]s`", name),
	}
}

// PageNotApproved is the failure of the read of a view's page that is not as it was listed or approved.
func PageNotApproved(server, uri, tool string) error {
	name := catalog.CommandWord(server + "/" + tool)
	return &transports.Failure{
		Upstream: server, Code: transports.CodeNotApproved, Outcome: transports.Executed,
		Cause: fmt.Errorf("%q, the page of %s, is not as it was approved", uri, name),
		Hint: fmt.Sprintf("a person sees it with `dynmcp diff %s --start`, and approves it with `dynmcp approve %[1]s`; "+
			"if it is another one at each start, \"pins\" has to be \"warn\"", name),
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
