package catalog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// A server that is called with what each principal keeps for it (Server.Personal) may list something
// else to each. Its listings are kept apart: what views show without more is that of the principal "",
// who runs dynmcp, and is shown to nobody else. Any other principal sees what was listed to him, or no
// listing. Equal listings are one in memory.

// Own is what the servers with listings of their own have listed to one principal. It is immutable.
type Own struct {
	key string            // equal for equal listings
	of  map[string]*index // by server
}

// nothingOwn is that of a principal to whom nothing was listed.
var nothingOwn = &Own{}

// Own returns what servers list to a principal, nil if he sees what all see. It never blocks.
func (c *Catalog) Own(principal string) *Own {
	all := c.own.Load()
	if principal == "" || all == nil {
		return nil
	}
	if own := (*all)[principal]; own != nil {
		return own
	}
	return nothingOwn
}

// An ownKey is the key of the variant of views for what was listed to some principals.
type ownKey string

// With returns the views with the listings of a principal in place of those that are not his. Each
// call with equal listings returns the same views.
func (vs *Views) With(own *Own) *Views {
	if own == nil {
		return vs
	}
	return vs.variant(ownKey(own.key), own.part)
}

// part returns the part of a server for the principal.
func (own *Own) part(p *serverView) *serverView {
	x := own.of[p.server.Name]
	if !p.server.Personal || p.index == x {
		return p
	}
	return newServerView(p.server, x, p.info.Down, nil, NoTasks)
}

// unloaded is part as if no lazy server had been loaded.
func (own *Own) unloaded(p *serverView) *serverView {
	if p.server.Personal && p.server.Lazy {
		return nothingOwn.part(p)
	}
	return own.part(p)
}

// ViewFor returns the current view for a principal with a host without tasks.
func (c *Catalog) ViewFor(principal string) *View {
	return c.Views().With(c.Own(principal))[NoTasks]
}

// IndexFor is Index for what a server lists to a principal.
func (c *Catalog) IndexFor(principal, name string, l *Listing) *Indexed {
	own := c.Own(principal)
	if own == nil {
		return c.Index(name, l)
	}
	if known := own.of[name]; known != nil {
		l = l.with(known.listing)
	}
	digest := l.digest()
	x := c.alike(name, digest)
	if x == nil {
		x = newIndex(l)
		x.digest = digest
	}
	return c.searchable(name, x)
}

// alike returns the index of an equal listing of another principal, or nil.
func (c *Catalog) alike(server, digest string) *index {
	if all := c.own.Load(); all != nil {
		for _, own := range *all {
			if x := own.of[server]; x != nil && x.digest == digest {
				return x
			}
		}
	}
	return nil
}

// PutFor is Put for what a server lists to a principal.
func (c *Catalog) PutFor(principal, name string, l *Indexed) bool {
	if principal == "" {
		return c.Put(name, l)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, declared := c.indexed[name]; !declared || c.own.Load() == nil || !c.isPersonalLocked(name) {
		return false
	}
	c.changeOwnLocked(slices.Values([]string{principal}), func(listed map[string]*index) {
		if l == nil {
			delete(listed, name)
		} else {
			listed[name] = l.view.index
		}
	})
	return true
}

func (c *Catalog) isPersonalLocked(name string) bool {
	return slices.ContainsFunc(c.servers, func(s Server) bool { return s.Name == name && s.Personal })
}

// declareOwnLocked keeps of the listings of principals those of servers that still have them.
func (c *Catalog) declareOwnLocked() {
	personal := map[string]bool{}
	for _, s := range c.servers {
		personal[s.Name] = s.Personal
		if s.Personal != c.personal[s.Name] { // what it listed before was for others
			c.indexed[s.Name] = nil
		}
	}
	c.personal = personal
	if !slices.ContainsFunc(c.servers, func(s Server) bool { return s.Personal }) {
		c.own.Store(nil)
		return
	}
	c.changeOwnLocked(c.principalsLocked(), func(listed map[string]*index) {
		maps.DeleteFunc(listed, func(name string, _ *index) bool { return !personal[name] })
	})
}

// forgetOwnLocked forgets what a server has listed to any principal.
func (c *Catalog) forgetOwnLocked(name string) {
	if c.own.Load() != nil {
		c.changeOwnLocked(c.principalsLocked(), func(listed map[string]*index) { delete(listed, name) })
	}
}

// principalsLocked returns the principals to whom something was listed.
func (c *Catalog) principalsLocked() iter.Seq[string] {
	if all := c.own.Load(); all != nil {
		return maps.Keys(*all)
	}
	return maps.Keys(map[string]*Own(nil))
}

// changeOwnLocked replaces what was listed to principals by what change makes of it.
func (c *Catalog) changeOwnLocked(principals iter.Seq[string], change func(listed map[string]*index)) {
	next := map[string]*Own{}
	if all := c.own.Load(); all != nil {
		maps.Copy(next, *all)
	}
	for principal := range principals {
		listed := map[string]*index{}
		if own := next[principal]; own != nil {
			maps.Copy(listed, own.of)
		}
		if change(listed); len(listed) > 0 {
			next[principal] = newOwn(listed)
		} else {
			delete(next, principal)
		}
	}
	c.own.Store(&next)
}

func newOwn(listed map[string]*index) *Own {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		fmt.Fprintf(&key, "%q%s", name, listed[name].digest)
	}
	return &Own{key.String(), listed}
}

// digest returns the same for listings that views show alike.
func (l *Listing) digest() string {
	h := sha256.New()
	for _, list := range [][]json.RawMessage{l.Tools, l.Prompts, l.Resources, l.Templates, {l.Capabilities, l.Info, l.Rest}} {
		fmt.Fprintf(h, "%d\n", len(list))
		for _, e := range list {
			fmt.Fprintf(h, "%d\n%s", len(e), e)
		}
	}
	fmt.Fprintf(h, "%q %q %d %t %d %v %q %q", l.Protocol, l.Instructions, l.Tasks, l.AsksRoots, l.Declared, l.Unlisted, l.More, l.Failed)
	return string(h.Sum(nil))
}
