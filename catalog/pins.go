package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/pins"
)

// A server whose tools are pinned has a guard (Server.Guard). It acts where tool filters do,
// on each listing, of this run or stored: hosts know of no tool that a guard which blocks
// does not approve. One that only warns lets them pass, and what it says is in the Tool.

// pin returns the tools as they are pinned.
func (x *index) pin() []pins.Tool {
	all := make([]pins.Tool, len(x.tools))
	for i, e := range x.tools {
		all[i] = pins.NewTool(e.name, e.raw)
	}
	return all
}

// judge notes which tools that pass the filter the guard does not approve.
func (p *serverView) judge() {
	if p.server.Guard == nil {
		return
	}
	pass := NewFilter(p.server.Filter)
	p.unapproved = map[string]pins.Verdict{}
	for i, v := range p.server.Guard.Judge(p.index.pinned()) {
		if e := p.index.tools[i]; v.Kind != pins.Approved && pass.Passes(e.name, AccessOf(e.annotations)) {
			p.unapproved[e.name] = v
		}
	}
}

// hidesUnapproved reports whether hosts may not know of a tool until it is approved.
func (p *serverView) hidesUnapproved(e *entry) bool {
	_, not := p.unapproved[e.name]
	return not && p.server.Guard.Blocks()
}

// AwaitingApproval returns the tools that hosts see only after a person has approved them.
func (v *View) AwaitingApproval() (held []*Tool) {
	for _, p := range v.parts {
		if !p.server.Guard.Blocks() {
			continue
		}
		p = p.opened()
		for _, e := range p.index.tools {
			if p.hidesUnapproved(e) {
				held = append(held, p.expose(e, cmp.Or(p.server.Aliases[e.name], e.name)))
			}
		}
	}
	return held
}

// WhyNotApproved says why a tool is hidden and how a person sees and approves it, as the rest of a
// sentence, by any name that it has or would have; "" if it is not.
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

// CommandWord returns a name as a word of a command that is shown.
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

// maxUnapproved is how many tools that are not approved have a warning of their own.
const maxUnapproved = 5

// warnOfUnapproved warns of tools that are not approved.
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

// SetGuards gives declared servers other guards. A server that is not among them has none.
func (c *Catalog) SetGuards(guards map[string]*pins.Guard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers = slices.Clone(c.servers)
	for i := range c.servers {
		c.servers[i].Guard = guards[c.servers[i].Name]
	}
	c.publishLocked()
}

// Pinned returns what a server lists as it is pinned: every tool that can be offered, whatever
// filters and guards say. ok is false where no listing is known.
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

// Digests returns the digests of the listing's tools, by upstream name; nil where its server
// had no guard when it was indexed.
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
