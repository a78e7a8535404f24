package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/pins"
)

// A server with pinned tools has a guard (Server.Guard). Like a tool filter it acts on each
// listing, of this run or stored. A guard that blocks hides the tools that are not approved.
// A guard that warns lets them pass; its verdict is in Tool.Unapproved.

// pin returns the tools as they are pinned.
func (x *index) pin() []pins.Tool {
	all := make([]pins.Tool, len(x.tools))
	for i, e := range x.tools {
		page := ""
		if names.MayHaveView(e.Raw) {
			page = x.listing.Pages[names.ViewURI(e.Raw)]
		}
		all[i] = pins.NewTool(e.Name, e.Raw, page)
	}
	return all
}

// judge records which of the tools that pass the filter are not approved.
func (p *serverView) judge() {
	g := p.server.Guard
	if g == nil || p.server.Personal && !g.Blocks() && !g.Pinned() && g.Broken() == nil { // the first listing may be one that nobody else is shown
		return
	}
	p.unapproved = map[string]pins.Verdict{}
	for i, v := range g.Judge(p.index.pinned()) {
		if e := p.index.tools[i]; v.Kind != pins.Approved && p.filter.Passes(e.Name, e.Access) {
			p.unapproved[e.Name] = v
		}
	}
}

// hidesUnapproved reports whether a tool is hidden until it is approved.
func (p *serverView) hidesUnapproved(e *entry.Tool) bool {
	_, not := p.unapproved[e.Name]
	return not && p.server.Guard.Blocks()
}

// AwaitingApproval returns the tools that are hidden until a person approves them.
func (v *View) AwaitingApproval() (held []*Tool) {
	for _, p := range v.parts {
		if !p.server.Guard.Blocks() {
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
		switch word := CommandWord(t.Server + "/" + t.Upstream); {
		case name != t.Name && name != t.Direct:
		case t.Unapproved.Kind == pins.Unread:
			return fmt.Sprintf("it %s. A person has to mend the lock", t.Unapproved)
		default:
			return fmt.Sprintf("it %s. A person sees what is in it with `dynmcp diff %s`, and approves it with `dynmcp approve %[2]s`", t.Unapproved, word)
		}
	}
	return ""
}

// CommandWord returns a name as a word of a displayed command, quoted if necessary.
func CommandWord(name string) string {
	if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789_-./") == "" {
		return name
	}
	return display.Name(name)
}

// unapprovedNote counts the hidden tools.
func (p *serverView) unapprovedNote() string {
	if len(p.unapproved) == 0 || !p.server.Guard.Blocks() {
		return ""
	}
	return fmt.Sprintf(" (%s not approved; a person can: dynmcp approve %s)", display.Plural(len(p.unapproved), "tool"), display.Escape(p.server.Name))
}

// maxUnapproved is how many unapproved tools get a warning of their own.
const maxUnapproved = 5

func (p *serverView) warnOfUnapproved() {
	if err := p.server.Guard.Broken(); err != nil && len(p.unapproved) > 0 {
		p.warnf("%s held back: %v", display.Plural(len(p.unapproved), "tool"), err)
		return
	}
	rest := 0
	for i, name := range slices.Sorted(maps.Keys(p.unapproved)) {
		if v := p.unapproved[name]; i < maxUnapproved && v.Kind != pins.Unpinned {
			p.warnf("tool %s %s (dynmcp diff %s)", display.Name(name), v, p.server.Name)
		} else {
			rest++
		}
	}
	if rest > 0 {
		p.warnf("%s not approved (dynmcp diff %s)", display.Plural(rest, "tool"), p.server.Name)
	}
}

// SetGuards replaces the guards of the declared servers. A server without an entry has none.
func (c *Catalog) SetGuards(guards map[string]*pins.Guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.servers {
		c.servers[i].Guard = guards[c.servers[i].Name]
	}
	c.publishLocked()
}

// Pinned returns the tools of a server as they are pinned: all that can be offered,
// regardless of filters and guards. ok is false without a listing.
func (c *Catalog) Pinned(server string) (tools []pins.Tool, ok bool) {
	c.mu.Lock()
	x := c.listedLocked(server)
	c.mu.Unlock()
	if x == nil {
		return nil, false
	}
	if x.open != nil {
		x = x.open()
	}
	return x.pinned(), true
}

// Pinned is Pinned of a Catalog as it was when the view was made.
func (v *View) Pinned(server string) (tools []pins.Tool, ok bool) {
	p, ok := v.server[server]
	if !ok || p.index == nil {
		return nil, false
	}
	return p.opened().index.pinned(), true
}

// Digests returns the digests of the listing's tools by upstream name, nil if the server had
// no guard when it was indexed.
func (l *Indexed) Digests() map[string]string {
	if l.view.server.Guard == nil {
		return nil
	}
	digests := map[string]string{}
	for _, t := range l.view.index.pinned() {
		digests[t.Name] = t.Digest
	}
	return digests
}
