// Package lock compares the tools of servers with the definitions that a person has approved, or that
// were first listed.
//
// A lock file beside the config has a digest for each tool (lock.go, file.go). A Guard compares
// a server's listing with it (guard.go), and says which tools are shown to hosts, and what is reported of the
// others (judgement.go). The definitions are kept in a directory, to show changes (definitions.go).
package lock

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/cli"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/schema"
)

// Keys are the keys of an entry.
type Keys struct {
	// Whether tools are compared with dynmcp.lock: warn reports, to the model and in the log, those that differ from the version that was first listed or approved; block hides those that dynmcp approve has not approved; off compares nothing. See docs/trust.md.
	Pins string `json:"pins" group:"limit" enum:"off,warn,block" default:"off" example:"warn"`
}

// Section is the section of the keys.
var Section = schema.ServerSectionOf[Keys]("pins", "")

// Approval implements approval.Keys.
func (k Keys) Approval() string { return cmp.Or(k.Pins, approval.Off) }

// guards applies the lock to the servers of one config.
type guards struct {
	files  Files
	blocks map[string]bool // of the servers with pins, by name
	log    *slog.Logger

	mu       sync.Mutex
	text     []byte // of the lock, as it was read
	problem  error  // of reading it
	byServer map[string]*Guard
	failed   bool // a failure to pin was logged
}

// Guards returns the guards of the servers of a config, nil if none has pins: then nothing is read.
// Definitions are kept in a directory, see Files.
func Guards(cfg *schema.Config, definitions string, log *slog.Logger) approval.Guards {
	p := &guards{files: Files{Lock: FileOf(cfg.Path), Definitions: definitions}, blocks: map[string]bool{}, log: log}
	for _, s := range cfg.Servers {
		if needed := approval.Needed(s); needed != approval.Off {
			p.blocks[s.Name] = needed == approval.Block
		}
	}
	if len(p.blocks) == 0 {
		return nil
	}
	p.Reread()
	return p
}

func (p *guards) of(server string) *Guard {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byServer[server]
}

// Guard implements approval.Guards.
func (p *guards) Guard(server string) approval.Guard {
	if g := p.of(server); g != nil {
		return g
	}
	return nil
}

// Reread implements approval.Guards.
func (p *guards) Reread() (changed bool) {
	lock, text, err := p.files.Read()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byServer != nil && bytes.Equal(text, p.text) && fmt.Sprint(err) == fmt.Sprint(p.problem) {
		return false
	}
	if err != nil {
		p.log.Error("the lock of approved tools cannot be read: no tool of a server with \"pins\": \"block\" is shown", "err", err)
	}
	book := NewBook(lock, err)
	p.problem, p.text, p.byServer = err, text, make(map[string]*Guard, len(p.blocks))
	for name, blocks := range p.blocks {
		p.byServer[name] = book.Guard(name, blocks)
	}
	return true
}

// Listed implements approval.Guards. It pins a listing if nothing of its server is pinned and no approval
// is required.
func (p *guards) Listed(ctx context.Context, server schema.Server, tools []definition.Tool) (changed bool) {
	g := p.of(server.Name)
	if g == nil || g.blocks || g.Pinned() || g.broken != nil {
		return false
	}
	runs := Running(ctx, server)
	err := p.files.Keep(tools)
	if err == nil {
		err = p.files.Update(func(l Lock) {
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

// Running returns the package and version that a server runs, for the lock of approved tools. It
// redacts secrets, because the lock is committed.
func Running(ctx context.Context, s schema.Server) string {
	return cli.Secrets.String(packages.Running(ctx, s.Command, s.Args, s.Env))
}
