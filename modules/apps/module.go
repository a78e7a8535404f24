// Package apps shows the views of MCP Apps to hosts that show them, on each surface, and sends the calls
// of a view to its server.
package apps

import (
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has the key apps, and adds tools with a view to the lists of hosts that show views.
var Module = module.Module{
	Name:  "apps",
	Keys:  []schema.Section{schema.SectionOf[Keys]("apps")},
	Start: start,
}

// Keys are the keys of the document.
type Keys struct {
	// Whether hosts that show views of MCP Apps are listed the tools that have one, beside those of the
	// surface. See docs/apps.md.
	Apps string `json:"apps" enum:"auto,off" default:"auto" example:"off"`
}

// A part adds the views of a run.
type part struct {
	event.None

	hosts  bool // are served
	screen screen
	on     atomic.Bool
	pinned atomic.Pointer[map[string]bool] // tools that are listed anyway
	used   func() map[string]int           // calls of tools before this run, by name; read when first needed

	mu   sync.Mutex
	seen map[string]needs // of views that were read, by URI as hosts read it
}

func start(run module.Run) (module.Part, error) {
	p := &part{hosts: run.Hosts, screen: screen{log: run.Log}, used: sync.OnceValue(func() map[string]int { return usage(run.Config) }), seen: map[string]needs{}}
	return p, p.Follow(run.Config)
}

// Follow changes to the settings of another config.
func (p *part) Follow(cfg *schema.Config) error {
	pinned := map[string]bool{}
	for _, pin := range cfg.Pin {
		pinned[pin] = true
	}
	p.pinned.Store(&pinned)
	p.on.Store(schema.Keys[Keys](cfg).Apps != "off")
	return nil
}

// End ends the pages.
func (p *part) End() { p.screen.end() }

// shows reports whether the views of servers get to a host through what is added here. They do by
// themselves if it sees one server unchanged.
func (p *part) shows(h extension.Host) bool {
	return p.on.Load() && h.Declares(catalog.AppsExtension) && !(h.IsSingleServer() && h.ListsDirectly())
}
