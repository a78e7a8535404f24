package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Abilities are the capabilities of a host through which a server can ask it for something. What a
// server lists may depend on them.
type Abilities uint8

const (
	ableRoots Abilities = 1 << iota
	ableSampling
	ableSamplingTools
	ableForms
	ableURLs
	ableApps // it shows views of MCP Apps

	AbleToAll Abilities = 1<<iota - 1
)

// AppsExtension is the id of MCP Apps.
const AppsExtension = "io.modelcontextprotocol/ui"

// AbilitiesOf reads the capabilities that a host declared.
func AbilitiesOf(capabilities json.RawMessage) (able Abilities) {
	add := func(a Abilities, has bool) {
		if has {
			able |= a
		}
	}
	has := func(path ...string) bool { return wire.IsObject(wire.Get(capabilities, path...)) }
	add(ableRoots, has("roots"))
	add(ableSampling, has("sampling"))
	add(ableSamplingTools, has("sampling", "tools"))
	add(ableForms, has("elicitation", "form") || has("elicitation") && !has("elicitation", "url"))
	add(ableURLs, has("elicitation", "url"))
	add(ableApps, has("extensions", AppsExtension))
	return able
}

// ShowsViews reports whether the host shows views of MCP Apps.
func (a Abilities) ShowsViews() bool { return a&ableApps != 0 }

// Capabilities returns the declaration of a host that has these abilities and no others.
func (a Abilities) Capabilities() json.RawMessage {
	declared := json.RawMessage(`{}`)
	add := func(of Abilities, capability, value string) {
		if a&of != 0 {
			declared = wire.Set(declared, capability, []byte(value))
		}
	}
	add(ableRoots, "roots", `{"listChanged":true}`)
	add(ableSampling, "sampling", `{}`)
	add(ableSamplingTools, "sampling", `{"tools":{}}`)
	add(ableForms, "elicitation", `{"form":{}}`)
	add(ableURLs, "elicitation", `{"url":{}}`)
	if a&ableForms != 0 && a&ableURLs != 0 {
		add(ableURLs, "elicitation", `{"form":{},"url":{}}`)
	}
	add(ableApps, "extensions", `{"`+AppsExtension+`":{"mimeTypes":["text/html;profile=mcp-app"]}}`)
	return declared
}

// A listing may have entries for hosts with different abilities. Its Unlisted holds the sorted keys
// of those that the server does not list to hosts with certain abilities. A listing for one host has
// no such keys for its Declared.

// listKinds are the lists of a listing, each with the word that begins the keys of its entries and the
// member that identifies an entry.
var listKinds = []struct {
	word, id string
	of       func(*Listing) *[]json.RawMessage
}{
	{"tool ", "name", func(l *Listing) *[]json.RawMessage { return &l.Tools }},
	{"prompt ", "name", func(l *Listing) *[]json.RawMessage { return &l.Prompts }},
	{"resource ", "uri", func(l *Listing) *[]json.RawMessage { return &l.Resources }},
	{"template ", "uriTemplate", func(l *Listing) *[]json.RawMessage { return &l.Templates }},
}

// entries returns the entries by their keys.
func (l *Listing) entries() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for _, kind := range listKinds {
		for _, e := range *kind.of(l) {
			id, _ := wire.Text(wire.Get(e, kind.id))
			all[kind.word+id] = e
		}
	}
	return all
}

// Beyond returns the keys of the entries that another listing lacks.
func (l *Listing) Beyond(other *Listing) []string {
	all := l.entries()
	for key := range other.entries() {
		delete(all, key)
	}
	return slices.Sorted(maps.Keys(all))
}

// with returns a new listing of a server together with the known one: with its entries for hosts of
// other abilities. Listings of two versions of the server, or with other definitions of an entry,
// are not joined.
func (l *Listing) with(known *Listing) *Listing {
	if known.Declared > AbleToAll || !bytes.Equal(known.Info, l.Info) || len(known.Failed) > 0 || len(l.Failed) > 0 {
		return l
	}
	joined := *l
	joined.Unlisted = maps.Clone(known.Unlisted)
	if _, several := known.Unlisted[known.Declared]; !several && known.Declared == l.Declared {
		return &joined
	}
	now, before := l.entries(), known.entries()
	for key, e := range now {
		if old, ok := before[key]; ok && !bytes.Equal(e, old) {
			return l
		}
	}
	if joined.Unlisted == nil {
		joined.Unlisted = map[Abilities][]string{}
	}
	if _, ok := joined.Unlisted[known.Declared]; !ok {
		joined.Unlisted[known.Declared] = nil
	}
	delete(joined.Unlisted, l.Declared)
	added := l.Beyond(known)
	if l.Refreshed { // they came during the connection, perhaps for all hosts
		added = nil
	}
	seen := map[string]bool{} // by hosts with other abilities
	for able, unlisted := range joined.Unlisted {
		for key := range before {
			seen[key] = seen[key] || !slices.Contains(unlisted, key)
		}
		joined.Unlisted[able] = slices.Compact(slices.Sorted(slices.Values(slices.Concat(unlisted, added))))
	}
	unlisted := []string{}
	for _, kind := range listKinds {
		list := kind.of(&joined)
		*list = slices.Clip(*list)
		for _, e := range *kind.of(known) {
			id, _ := wire.Text(wire.Get(e, kind.id))
			if key := kind.word + id; now[key] == nil && seen[key] {
				*list, unlisted = append(*list, e), append(unlisted, key)
			}
		}
	}
	slices.Sort(unlisted)
	joined.Unlisted[l.Declared] = unlisted
	joined.Declared |= known.Declared
	if joined.Unlisted[joined.Declared] == nil {
		joined.Unlisted[joined.Declared] = []string{} // as far as known
	}
	return &joined
}

// unlistedFor returns the keys of the entries that are not listed to hosts with these abilities.
// known is false if that was not found out.
func (l *Listing) unlistedFor(able Abilities) (keys []string, known bool) {
	if keys, known = l.Unlisted[able]; known {
		return keys, true
	}
	none, compared := l.Unlisted[0]
	return nil, compared && len(none) == 0 || able&l.Declared == l.Declared
}

// whyUnlisted says why a tool is missing that the server lists to other hosts.
const whyUnlisted = "its server lists it only to hosts that support more of roots, sampling and elicitation"

const whyForViews = "it is only for views of MCP Apps, which this host does not show"

// forViews returns how many tools are only for views.
func (x *index) forViews() (n int) {
	if x.open != nil {
		return x.stored.ForViews
	}
	for _, e := range x.tools {
		if e.OnlyViews {
			n++
		}
	}
	return n
}

// seenBy returns the index for hosts with these abilities.
func (x *index) seenBy(able Abilities) *index {
	keys, _ := x.listing.unlistedFor(able)
	forViews := 0 // tools that are only for views
	if able&ableApps == 0 {
		forViews = x.forViews()
	}
	if len(keys) == 0 && forViews == 0 {
		return x
	}
	seen := *x
	isUnlisted := func(word, id string) bool {
		_, ok := slices.BinarySearch(keys, word+id)
		return ok
	}
	if x.open != nil {
		stored := *x.stored
		stored.ForViews -= forViews
		stored.Count -= forViews + len(slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !strings.HasPrefix(key, "tool ") }))
		seen.stored = &stored
		seen.open = sync.OnceValue(func() *index { return x.open().seenBy(able) })
	}
	seen.tools, seen.hidden = nil, maps.Clone(x.hidden)
	for _, e := range x.tools {
		if forViews > 0 && e.OnlyViews {
			seen.hidden[e.Name] = entry.LeftOut{Tool: e, Why: whyForViews}
			continue
		}
		if isUnlisted("tool ", e.Name) {
			seen.hidden[e.Name] = entry.LeftOut{Tool: e, Why: whyUnlisted}
			continue
		}
		seen.tools = append(seen.tools, e)
	}
	for word, list := range map[string]*[]entry.Named{"prompt ": &seen.prompts, "resource ": &seen.resources, "template ": &seen.templates} {
		*list = slices.DeleteFunc(slices.Clone(*list), func(n entry.Named) bool { return isUnlisted(word, n.ID) })
	}
	seen.words = sync.OnceValue(func() *search.Index { return entry.Index(seen.tools) })
	seen.defined = sync.OnceValue(seen.define)
	return &seen
}

// For returns the views for hosts with these abilities. Each call returns the same.
func (vs *Views) For(able Abilities) *Views {
	return vs.variant(able, func(p *serverView) *serverView {
		if p.index == nil {
			return p
		}
		x := p.index.seenBy(able)
		if x == p.index {
			return p
		}
		return newServerView(p.server, x, p.info.Down, nil, NoTasks)
	})
}

// KnowsListsFor reports whether it is known which entries of a server that is listed in this run
// hosts with these abilities see. mayDiffer is false if it is known that all see the same.
func (c *Catalog) KnowsListsFor(able Abilities, server string) (known, mayDiffer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.indexed[server]
	if x == nil {
		return true, false
	}
	_, known = x.listing.unlistedFor(able)
	none, compared := x.listing.Unlisted[0]
	return known, !compared || len(none) > 0
}

// NoteUnlisted records that a server does not list the entries with these keys to hosts with these
// abilities.
func (c *Catalog) NoteUnlisted(able Abilities, server string, keys []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.indexed[server]
	if x == nil {
		return
	}
	changed, listing := *x, *x.listing
	listing.Unlisted = maps.Clone(listing.Unlisted)
	if listing.Unlisted == nil {
		listing.Unlisted = map[Abilities][]string{}
	}
	listing.Unlisted[able] = keys
	changed.listing = &listing
	c.indexed[server] = &changed
	c.publishLocked()
}

// Listed returns what a server listed in this run, to hosts with any abilities; nil if it was not
// listed.
func (c *Catalog) Listed(server string) *Listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.indexed[server]; x != nil {
		return x.listing
	}
	return nil
}
