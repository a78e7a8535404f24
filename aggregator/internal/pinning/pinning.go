// Package pinning holds the servers of one config to its lock of approved tools: it gives the
// catalogue their guards, reads the lock again when it has changed, and pins what a server
// lists when it is first used.
package pinning

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/dynmcp/dynmcp/internal/pins"
	"github.com/dynmcp/dynmcp/schema"
)

// Pins are those of one config. Nil is a config that has none.
type Pins struct {
	files  pins.Files
	blocks map[string]bool                             // of the servers that are held to the lock, by name
	runs   func(context.Context, schema.Server) string // which package; nil knows none
	log    *slog.Logger

	mu      sync.Mutex
	text    []byte // of the lock, as it was read
	problem error  // with it
	guards  map[string]*pins.Guard
	failed  bool // to pin was logged
}

// Of returns the pins of a config, nil where all servers are off: then nothing is read.
// Definitions are kept in a directory, or with "" nowhere.
func Of(cfg *schema.Config, definitions string, runs func(context.Context, schema.Server) string, log *slog.Logger) *Pins {
	p := &Pins{files: pins.Files{Lock: pins.FileOf(cfg.Path), Definitions: definitions}, blocks: map[string]bool{}, runs: runs, log: log}
	for _, s := range cfg.Servers {
		if s.Pins != "" && s.Pins != schema.PinsOff {
			p.blocks[s.Name] = s.Pins == schema.PinsBlock
		}
	}
	if len(p.blocks) == 0 {
		return nil
	}
	p.Reread()
	return p
}

// Guard returns the guard of a server, nil where it has none.
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

// Reread reads the lock, and reports whether it is another one than before.
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

// FirstUse pins what a server lists where nothing of it is pinned and that needs nobody's
// approval. It reports whether it did.
func (p *Pins) FirstUse(ctx context.Context, server schema.Server, tools []pins.Tool) (pinned bool) {
	guard := p.Guard(server.Name)
	if guard == nil || guard.Blocks() || guard.Pinned() || guard.Broken() != nil {
		return false
	}
	runs := ""
	if p.runs != nil {
		runs = p.runs(ctx, server)
	}
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
		p.log.Info("tools pinned as they are first listed", "upstream", server.Name, "tools", len(tools))
		return p.Reread()
	case !again:
		p.log.Warn("tools are not pinned: it will not be said when they change", "upstream", server.Name, "err", err)
	}
	return false
}
