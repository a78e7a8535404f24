package catalog

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/catalog/search"
)

// A Stored is what a server listed in an earlier run. Its tools are read when first needed:
// most servers are not used in a run.
type Stored struct {
	Listing        // without Tools
	Count     int  // of the tools
	OnlyTasks bool // one of them runs only as a task
	ForViews  int  // how many are only for views of MCP Apps

	// ReadTools returns the tools. It is called once and cannot fail: they were checked when
	// the Stored was made.
	ReadTools func() []json.RawMessage
}

// Remember sets the listings of earlier runs, by server. Each is used until [Catalog.Put]
// lists its server. Those of undeclared servers are ignored.
func (c *Catalog) Remember(stored map[string]*Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored = make(map[string]*index, len(stored))
	for name, s := range stored {
		c.stored[name] = newStoredIndex(s)
	}
	c.publishLocked()
}

// RememberServer is Remember for one server, which another replica has listed.
func (c *Catalog) RememberServer(name string, s *Stored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stored[name] = newStoredIndex(s)
	c.publishLocked()
}

// listedLocked returns what a server listed, in this run or else in an earlier one; nil if
// nothing is known.
func (c *Catalog) listedLocked(server string) *index {
	if x := c.indexed[server]; x != nil {
		return x
	}
	return c.stored[server]
}

// lastListing returns what listedLocked has, with the tools; nil if nothing is known.
func (c *Catalog) lastListing(server string) *Listing {
	c.mu.Lock()
	x := c.listedLocked(server)
	c.mu.Unlock()
	if x == nil {
		return nil
	}
	if x.open != nil {
		x = x.open()
	}
	return x.listing
}

// newStoredIndex parses all but the tools, which open reads.
func newStoredIndex(s *Stored) *index {
	x := &index{listing: &s.Listing, stored: s}
	x.addOthers()
	x.open = sync.OnceValue(func() *index {
		listing := s.Listing
		listing.Tools = s.ReadTools()
		full := &index{listing: &listing, stored: s, prompts: x.prompts, resources: x.resources, templates: x.templates}
		full.addTools()
		full.read.Warnings = append(full.read.Warnings, x.read.Warnings...)
		return full
	})
	return x
}

// unread reports whether the tools of a part are those of an earlier run, and have
// yet to be read.
func (p *serverView) unread() bool { return p.open != nil }

// opened returns the part with its tools, which are read if need be.
func (p *serverView) opened() *serverView {
	if p.open == nil {
		return p
	}
	return p.open()
}

// A toolset is the tools of all servers together.
type toolset struct {
	parts  []*serverView // opened, config order
	tools  []*Tool       // sorted by name
	byName map[string]*Tool
	direct map[string]*Tool
	corpus *search.Corpus

	warnings []string
}

// all returns the tools of all servers. It reads stored ones first.
func (v *View) all() *toolset {
	v.merge.Do(func() {
		unread := slices.ContainsFunc(v.parts, (*serverView).unread)
		v.merged.Store(mergeTools(v.parts))
		if unread { // reading leaves more garbage than tools, and the next collection may be far off
			runtime.GC()
		}
	})
	return v.merged.Load()
}

// Unread reports whether a question about all servers has to read stored tools
// first, which may take a while.
func (v *View) Unread() bool {
	return v.merged.Load() == nil && slices.ContainsFunc(v.parts, (*serverView).unread)
}

// part returns what the view shows of a server, with its tools; nil if it is not
// offered.
func (v *View) part(server string) *serverView {
	if p := v.server[server]; p != nil {
		return p.opened()
	}
	return nil
}

// toolOf finds a tool by its name without reading those of other servers.
func (v *View) toolOf(name string) *Tool {
	if m := v.merged.Load(); m != nil {
		return m.byName[name]
	}
	if server, _, ok := strings.Cut(name, "/"); ok && v.server[server] != nil {
		tools := v.part(server).tools
		if i, ok := slices.BinarySearchFunc(tools, name, func(t *Tool, name string) int { return strings.Compare(t.Name, name) }); ok {
			return tools[i]
		}
	}
	return v.all().byName[name]
}
