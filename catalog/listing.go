package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dynmcp/dynmcp/catalog/conform"
	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/definition"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/toolglob"
)

// Listing is everything that one upstream said about itself, verbatim and in its order. It is
// immutable once passed to [Catalog.Index].
type Listing struct {
	Tools, Prompts, Resources, Templates []json.RawMessage

	Protocol           string          // the version in use
	Capabilities, Info json.RawMessage // as in the answer to initialize
	Tasks              Tasks           // that it offers
	AsksRoots          bool            // it has asked a host for roots
	Instructions       string
	Rest               json.RawMessage // an object of the other members of that answer; may be nil

	Refreshed bool                   // it replaces one of the same connection
	Declared  Abilities              // of the host for which it was listed; more than AbleToAll if not known
	Unlisted  map[Abilities][]string // what hosts with other abilities are not listed, see abilities.go

	More map[string][]json.RawMessage // lists of extensions, by method

	Pages map[string]string // digests of the pages of views, by URI, if the tools are pinned

	Failed map[string]string // lists that could not be fetched and are empty here: method → why
}

// index is a listing, parsed once.
type index struct {
	listing *Listing
	stored  *Stored                  // the stored listing that it is from; nil for a listing of this run
	open    func() *index            // reads the tools; nil if they are here
	tools   []*entry.Tool            // tools that can be offered, in listed order
	words   func() *search.Index     // over tools, made when first needed
	defined func() []definition.Tool // their definitions, made when first needed

	prompts, resources, templates []entry.Named

	digest string // of the listing, if it is one of a principal

	hidden map[string]entry.LeftOut // tools that are left out, by name
	read   entry.Reader             // with warnings of what was left out, and why
}

func newIndex(l *Listing) *index {
	x := &index{listing: l}
	x.addTools()
	x.addOthers()
	return x
}

// addTools reads the tools.
func (x *index) addTools() {
	x.tools, x.hidden = x.read.Tools(x.listing.Tools)
	x.words = sync.OnceValue(func() *search.Index { return entry.Index(x.tools) })
	x.defined = sync.OnceValue(x.define)
}

// addOthers reads the prompts, resources and templates.
func (x *index) addOthers() {
	l := x.listing
	x.prompts = x.read.Named("prompt", "name", l.Prompts, conform.Prompt)
	x.resources = x.read.Named("resource", "uri", l.Resources, conform.Resource)
	x.templates = x.read.Named("resource template", "uriTemplate", l.Templates, conform.Template)
	for _, method := range slices.Sorted(maps.Keys(l.Failed)) {
		x.read.Warnf("%s is empty until its server answers: %s", method, display.Cut(display.Fold(l.Failed[method]), 200))
	}
}

// Check returns the problems of a listing for a declared server: broken tools that its filter
// does not hide, and aliases that are another tool's name.
func (c *Catalog) Check(name string, l *Listing) (broken, clashes []string) {
	s, ok := c.declared(name)
	if !ok {
		return nil, nil
	}
	x := newIndex(l)
	listed := map[string]bool{}
	for _, e := range x.tools {
		listed[e.Name] = true
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Aliases)) {
		if alias := s.Aliases[tool]; alias != tool && listed[tool] && listed[alias] {
			clashes = append(clashes, fmt.Sprintf("tool %s has the alias %s, which is another tool's name; give one of them another in path_aliases", display.Name(tool), display.Name(alias)))
		}
	}
	return x.broken(toolglob.NewFilter(s.Filter)), clashes
}

// Broken returns the tools of a server that pass f but are left out because of their
// definitions, each with the reason.
func (v *View) Broken(server string, f toolglob.Filter) []string {
	if p := v.server[server]; p != nil && p.index != nil {
		return p.index.broken(p.filter, f)
	}
	return nil
}

func (x *index) broken(filters ...toolglob.Filter) []string {
	var all []string
tools:
	for _, name := range slices.Sorted(maps.Keys(x.hidden)) {
		h := x.hidden[name]
		if h.Why == whyUnlisted || h.Why == whyForViews {
			continue
		}
		for _, f := range filters {
			if !f.Passes(name, h.Tool.Access) {
				continue tools
			}
		}
		all = append(all, fmt.Sprintf("tool %s is broken: %s", display.Name(name), h.Why))
	}
	return all
}
