package catalog

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/schema"
)

// Server declares an upstream to the catalogue.
type Server struct {
	Name        string
	Description string // the operator's own words
	Lazy        bool   // loaded by load_mcp or by first use
	Note        string // shown after the server's line, such as "(run: dynmcp login NAME)"
	Single      bool   // single-wrap mode: tool names without "server/"
	Types       bool   // schemas of its tools are written as types, see package typescript

	MaxOutputChars int // of a result of its tools; 0 is no limit

	Personal bool // it has a listing for each principal, see own.go

	Guard approval.Guard // knows the approved tools; nil approves all

	Filter    []string                       // globs on upstream tool names, or classes; "!" denies
	Overrides map[string]schema.ToolOverride // by upstream tool name; empty fields change nothing
	Aliases   map[string]string              // upstream tool name to the name shown

	hider Hider // see Views.Hiding; nil hides nothing
}

// Catalog collects the listings of upstreams and publishes them as a [View]. It is safe for
// concurrent use.
type Catalog struct {
	views atomic.Pointer[Views]
	own   atomic.Pointer[map[string]*Own] // by principal; nil without a server that has listings of principals

	mu       sync.Mutex
	servers  []Server                // declared, config order
	indexed  map[string]*index       // server → its listing, indexed once
	stored   map[string]*index       // server → the listing of an earlier run
	evicted  map[string]bool         // declared but no longer offered
	down     map[string]string       // server not listed in this run → why it could not be started
	parts    map[string]*serverView  // server → what the current view shows of it
	profiles map[string]*profileView // by name
	singles  map[string]singleView   // server → its views in single-wrap mode
	personal map[string]bool         // server → Server.Personal
}

// New returns an empty catalogue.
func New() *Catalog {
	c := &Catalog{indexed: map[string]*index{}, stored: map[string]*index{}, evicted: map[string]bool{}, down: map[string]string{}, singles: map[string]singleView{}}
	c.publishLocked()
	return c
}

// View returns the current view for hosts without tasks. It never blocks.
func (c *Catalog) View() *View { return c.Views()[NoTasks] }

// Views returns the current views. It never blocks.
func (c *Catalog) Views() *Views { return c.views.Load() }

// A singleView is one server in single-wrap mode.
type singleView struct {
	of    *serverView // the part that views was made from
	views *Views
}

// Single returns the views of one server in single-wrap mode. They are empty if the server is
// not offered.
func (c *Catalog) Single(name string) *Views {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parts[name]
	known, ok := c.singles[name]
	if ok && known.of == p {
		return known.views
	}
	var parts []*serverView
	if p != nil {
		s := p.server
		s.Single = true
		parts = append(parts, newServerView(s, p.index, c.down[name], nil, NoTasks))
	}
	c.singles[name] = singleView{p, viewsOf(parts)}
	return c.singles[name].views
}

// Unloaded returns the views of a profile, or of all servers if it is "", as if no lazy
// server had been loaded in this run: lazy servers show their stored listings. own is that of the
// principal.
func (c *Catalog) Unloaded(profile string, own *Own) *Views {
	c.mu.Lock()
	defer c.mu.Unlock()
	offered := c.offeredLocked(profile)
	for i, p := range offered {
		if s := p.server; s.Lazy && c.indexed[s.Name] != nil {
			offered[i] = newServerView(s, c.stored[s.Name], "", nil, NoTasks)
		}
		if own != nil {
			offered[i] = own.unloaded(offered[i])
		}
	}
	return viewsOf(offered)
}

// Declare replaces the set of servers, in config order. Listings of servers
// declared before and again now are kept, others are forgotten, and evicted
// servers are offered again. If two servers have the same name, the first counts.
func (c *Catalog) Declare(servers []Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := map[string]*index{}
	c.servers = nil
	for _, s := range servers {
		if _, twice := kept[s.Name]; !twice {
			kept[s.Name] = c.indexed[s.Name]
			c.servers = append(c.servers, s)
		}
	}
	c.indexed = kept
	c.declareOwnLocked()
	c.evicted = map[string]bool{}
	maps.DeleteFunc(c.down, func(name, _ string) bool { _, still := kept[name]; return !still })
	c.publishLocked()
}

// declared returns the declaration of a server. An undeclared one has only its name.
func (c *Catalog) declared(name string) (s Server, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.servers, func(s Server) bool { return s.Name == name }); i >= 0 {
		return c.servers[i], true
	}
	return Server{Name: name}, false
}

// An Indexed is a listing prepared for [Catalog.Put].
type Indexed struct{ view *serverView }

// Index reads a server's listing and applies the server's declaration to it. What the server is
// known to list to hosts with other abilities is added. It is slow for a large listing: no lock
// that others wait for should be held.
func (c *Catalog) Index(name string, l *Listing) *Indexed {
	if known := c.lastListing(name); known != nil {
		l = l.with(known)
	}
	return c.searchable(name, newIndex(l))
}

// searchable returns an index for the catalogue, with what the first search would wait for.
func (c *Catalog) searchable(name string, x *index) *Indexed {
	s, _ := c.declared(name)
	p := newServerView(s, x, "", nil, NoTasks)
	p.found.Index()
	p.found.About()
	return &Indexed{p}
}

// Put records a server's listing. nil forgets it, for all principals: the server stays offered, with its
// stored listing if there is one. An evicted server is offered again. Put reports false and does
// nothing if the server is not declared, as when a load outlives a reload. Of concurrent
// calls for one server any may win, so its caller must serialize them.
func (c *Catalog) Put(name string, l *Indexed) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, declared := c.indexed[name]; !declared {
		return false
	}
	c.indexed[name] = nil
	if l != nil {
		c.indexed[name] = l.view.index
		c.parts[name] = l.view // publishLocked uses it if the declaration is still the same
	} else {
		c.forgetOwnLocked(name)
	}
	delete(c.evicted, name)
	delete(c.down, name)
	c.publishLocked()
	return true
}

// Fail records why a server without a listing of this run could not be started. "" clears the
// reason: the server is being started.
func (c *Catalog) Fail(name, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x, declared := c.indexed[name]; !declared || x != nil || c.down[name] == why {
		return
	}
	c.down[name] = why
	c.publishLocked()
}

// Note sets the note that is shown after a server's line, until the next Declare.
func (c *Catalog) Note(name, note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.servers, func(s Server) bool { return s.Name == name })
	if i < 0 || c.servers[i].Note == note {
		return
	}
	c.servers[i].Note = note
	c.publishLocked()
}

// Drop forgets a server's listing and stops offering the server, until it is
// put or declared again.
func (c *Catalog) Drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, declared := c.indexed[name]; !declared {
		return
	}
	c.indexed[name] = nil
	c.evicted[name] = true
	c.publishLocked()
}

// publishLocked builds the view of the present state. Parts whose declaration
// and listing are as before are reused, so a change costs its own server plus
// one merge.
func (c *Catalog) publishLocked() {
	parts := make(map[string]*serverView, len(c.servers))
	var offered []*serverView
	for _, s := range c.servers {
		if c.evicted[s.Name] {
			continue
		}
		p := c.parts[s.Name]
		down := c.down[s.Name]
		x := c.listedLocked(s.Name)
		if p == nil || p.index != x || p.info.Down != display.Fold(down) || !reflect.DeepEqual(p.server, s) {
			p = newServerView(s, x, down, nil, NoTasks)
		}
		parts[s.Name] = p
		offered = append(offered, p)
	}
	c.parts = parts
	maps.DeleteFunc(c.singles, func(name string, _ singleView) bool { return parts[name] == nil })
	c.views.Store(viewsOf(offered))
}
