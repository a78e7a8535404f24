package catalog

import (
	"cmp"
	"fmt"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/approval"
	"github.com/dynmcp/dynmcp/internal/definition"
)

// A server whose tools have to be approved has a guard (Server.Guard). Like a tool filter it acts on each
// listing, of this run or stored. A guard that blocks hides the tools that are not approved. One that does not
// lets them pass; its verdict is in Tool.Unapproved.

// define returns the definitions of the tools.
func (x *index) define() []definition.Tool {
	all := make([]definition.Tool, len(x.tools))
	for i, e := range x.tools {
		page := ""
		if names.MayHaveView(e.Raw) {
			page = x.listing.Pages[names.ViewURI(e.Raw)]
		}
		all[i] = definition.New(e.Name, e.Raw, page)
	}
	return all
}

// hidesUnapproved reports whether a tool is hidden until it is approved.
func (p *serverView) hidesUnapproved(e *entry.Tool) bool {
	_, not := p.approval.Unapproved[e.Name]
	return not && p.server.Guard.Blocks()
}

// AwaitingApproval returns the tools that are hidden until a person approves them.
func (v *View) AwaitingApproval() (held []*Tool) {
	for _, p := range v.parts {
		if !approval.Blocks(p.server.Guard) {
			continue
		}
		p = p.opened()
		for _, e := range p.index.tools {
			if p.hidesUnapproved(e) {
				held = append(held, p.expose(e, cmp.Or(p.server.Aliases[e.Name], e.Name)))
			}
		}
	}
	return held
}

// WhyNotApproved returns why the tool of an exposed or direct name is hidden and how a person
// approves it, as the rest of a sentence. It is "" if the tool is not hidden for approval.
func WhyNotApproved(v *View, name string) string {
	for _, t := range v.AwaitingApproval() {
		if name == t.Name || name == t.Direct {
			return fmt.Sprintf("it %s. %s", t.Unapproved.Why, t.Unapproved.Remedy)
		}
	}
	return ""
}

// SetGuards replaces the guards of the declared servers.
func (c *Catalog) SetGuards(guards approval.Guards) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.servers {
		c.servers[i].Guard = guards.Guard(c.servers[i].Name)
	}
	c.publishLocked()
}

// Definitions returns the definitions of the tools of a server: all that can be offered,
// regardless of filters and guards. ok is false without a listing.
func (v *View) Definitions(server string) (tools []definition.Tool, ok bool) {
	p, ok := v.server[server]
	if !ok || p.index == nil {
		return nil, false
	}
	return p.opened().index.defined(), true
}

// Digests returns the digests of the listing's tools by upstream name, nil if the server had
// no guard when it was indexed.
func (l *Indexed) Digests() map[string]string {
	if l.view.server.Guard == nil {
		return nil
	}
	digests := map[string]string{}
	for _, t := range l.view.index.defined() {
		digests[t.Name] = t.Digest
	}
	return digests
}
