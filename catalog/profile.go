package catalog

import (
	"cmp"
	"reflect"

	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// A profileView is the part of the catalogue in a profile, whose servers may have other
// declarations.
type profileView struct {
	servers []Server
	parts   map[string]profilePart // server → its part, if the declarations differ
	of      *Views                 // the views that views was made from
	views   *Views
}

type profilePart struct{ of, part *serverView }

// DeclareProfiles replaces the profiles, which select from the declared servers.
func (c *Catalog) DeclareProfiles(profiles map[string]schema.Profile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles = map[string]*profileView{}
	for name, p := range profiles {
		v := &profileView{parts: map[string]profilePart{}}
		for _, s := range c.servers {
			if !profile.Has(p, s.Name) {
				continue
			}
			o := p.Overrides[s.Name]
			s.Description = cmp.Or(o.Description, s.Description)
			if o.ToolFilter != nil {
				s.Filter = o.ToolFilter
			}
			v.servers = append(v.servers, s)
		}
		c.profiles[name] = v
	}
}

// Profile returns the views of a profile. They are empty if there is no such profile.
func (c *Catalog) Profile(name string) *Views {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, all := c.profiles[name], c.views.Load()
	switch {
	case p == nil:
		return viewsOf(nil)
	case p.of != all:
		p.of, p.views = all, viewsOf(c.offeredLocked(name))
	}
	return p.views
}

// offeredLocked returns the offered parts of a profile or, with "", of all servers.
func (c *Catalog) offeredLocked(name string) (offered []*serverView) {
	if name == "" {
		for _, s := range c.servers {
			if p := c.parts[s.Name]; p != nil {
				offered = append(offered, p)
			}
		}
		return offered
	}
	p := c.profiles[name]
	if p == nil {
		return nil
	}
	for _, s := range p.servers {
		part := c.parts[s.Name]
		if part == nil {
			continue
		}
		if s.Note = part.server.Note; !reflect.DeepEqual(s, part.server) {
			own := p.parts[s.Name]
			if own.of != part {
				own = profilePart{part, newServerView(s, part.index, c.down[s.Name], nil, NoTasks)}
				p.parts[s.Name] = own
			}
			part = own.part
		}
		offered = append(offered, part)
	}
	return offered
}
