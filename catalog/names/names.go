// Package names says which server the resources, templates and prompts of a host's requests belong
// to, and names those that several servers list.
//
// Their names pass unchanged while one server has them. What several servers list has the server in its
// name: dynmcp+SERVER+URI, ui://SERVER+REST or skill://SERVER+REST, whose schemes mean something to
// hosts, and SERVER.PROMPT. A URI that reads like one of these is never anything else.
package names

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// A List is what one server lists.
type List struct {
	Server                        string
	Resources, Templates, Prompts []entry.Named
	Others                        []string // URIs in lists of extensions
}

// A Table has the names in the lists of some servers. It is immutable.
type Table struct {
	Lists   []List   // as hosts see them, in config order
	Clashes []string // says which names several servers list

	servers     map[string]bool
	uris        map[string]owners // of listed resources, by normal form
	shapes      map[string]owners // of templates
	templates   []template        // the most specific first
	authorities map[string]owners // of what is listed
	prompts     map[string]owners // by the servers' own names
	shown       map[string]Owner  // prompts that have their server in the name, by that name
}

// owners are the servers that a name belongs to, in config order.
type owners []string

// with returns of with a server; alone is the server by itself.
func (of owners) with(alone owners) owners {
	switch {
	case of == nil:
		return alone
	case slices.Contains(of, alone[0]):
		return of
	}
	return slices.Concat(of, alone)
}

// An Owner is the server that a name belongs to, and the server's own form of the name.
type Owner struct{ Server, Name string }

// New returns the table for hosts that see these servers, in config order. A server without a
// listing has an empty list.
func New(lists []List) *Table {
	t := &Table{
		Lists: slices.Clone(lists), servers: map[string]bool{}, uris: map[string]owners{}, shapes: map[string]owners{},
		authorities: map[string]owners{}, prompts: map[string]owners{}, shown: map[string]Owner{},
	}
	for _, l := range lists {
		t.servers[l.Server] = true
		t.claim(l)
	}
	slices.SortStableFunc(t.templates, template.compare)
	said := map[string]bool{}
	for i := range t.Lists {
		l := &t.Lists[i]
		rename(l.Resources, "uri", &l.Resources, func(uri string) string {
			return t.called(l.Server, uri, "resource URI", t.uris[normal(uri)], said)
		})
		rename(l.Templates, "uriTemplate", &l.Templates, func(uri string) string {
			return t.called(l.Server, uri, "resource template", t.shapes[shapeOf(uri)], said)
		})
	}
	t.namePrompts()
	return t
}

// Single returns the table for hosts of one server, which see its own names.
func Single(l List) *Table {
	t := New([]List{l})
	t.Lists, t.servers, t.Clashes = []List{l}, nil, nil
	return t
}

// claim records what a server lists.
func (t *Table) claim(l List) {
	alone, last := owners{l.Server}, ""
	uri := func(uri string) {
		uri = normal(uri)
		t.uris[uri] = t.uris[uri].with(alone)
		if at, _ := authority(uri); at != last {
			t.authorities[at], last = t.authorities[at].with(alone), at
		}
	}
	for _, n := range l.Resources {
		uri(n.ID)
	}
	for _, other := range l.Others {
		uri(other)
	}
	for _, n := range l.Templates {
		of := newTemplate(l.Server, n.ID)
		t.shapes[of.shape()] = t.shapes[of.shape()].with(alone)
		if of.literals[0] == "" { // it would match everything
			continue
		}
		t.templates = append(t.templates, of)
		if at, whole := authority(of.literals[0]); whole || len(of.literals) == 1 {
			t.authorities[at] = t.authorities[at].with(alone)
		}
	}
	for _, n := range l.Prompts {
		t.prompts[n.ID] = t.prompts[n.ID].with(alone)
	}
}

// rename sets the names of entries to what called returns. The list is copied if one changes.
func rename(list []entry.Named, key string, out *[]entry.Named, called func(string) string) {
	for i, n := range list {
		name := called(n.ID)
		if name == n.ID {
			continue
		}
		if &(*out)[0] == &list[0] {
			*out = slices.Clone(list)
		}
		(*out)[i] = entry.Named{ID: name, Raw: json.RawMessage(wire.Set(n.Raw, key, wire.Quote(name)))}
	}
}

// called returns the name in a list for a URI or template that some servers list.
func (t *Table) called(server, uri, kind string, of owners, said map[string]bool) string {
	_, _, scoped := t.scoped(uri)
	if len(of) < 2 && !scoped {
		return uri
	}
	if key := kind + uri; len(of) > 1 && !said[key] {
		said[key] = true
		t.noteClash(kind, uri, of, Scoped)
	}
	return Scoped(server, uri)
}

func (t *Table) noteClash(kind, name string, of owners, called func(server, name string) string) {
	var all []string
	for _, server := range of {
		all = append(all, display.Name(called(server, name)))
	}
	t.Clashes = append(t.Clashes, fmt.Sprintf("%s collision: %s is listed by %s; hosts see %s",
		kind, display.Name(name), strings.Join(of, " and "), strings.Join(all, ", ")))
}

// namePrompts names the prompts. One that only one server lists gets the server's name too if it
// reads like that of another.
func (t *Table) namePrompts() {
	clashes := map[string]bool{}
	for name, of := range t.prompts {
		if len(of) > 1 {
			clashes[name] = true
		}
	}
	for more := true; more; {
		more = false
		for name := range clashes {
			for _, server := range t.prompts[name] {
				other := PromptOf(server, name)
				if _, taken := t.prompts[other]; taken && !clashes[other] {
					clashes[other], more = true, true
				}
			}
		}
	}
	said := map[string]bool{}
	for i := range t.Lists {
		l := &t.Lists[i]
		rename(l.Prompts, "name", &l.Prompts, func(name string) string {
			if !clashes[name] {
				return name
			}
			called := PromptOf(l.Server, name)
			if !said[name] && len(t.prompts[name]) > 1 {
				said[name] = true
				t.noteClash("prompt name", name, t.prompts[name], PromptOf)
			}
			t.shown[called] = Owner{l.Server, name}
			return called
		})
	}
}

// PromptOf returns the name of a server's prompt with the server in it.
func PromptOf(server, name string) string { return server + "." + name }

// Prompt returns the owner of a prompt. If several servers have it, they are returned instead.
func (t *Table) Prompt(name string) (_ Owner, several []string) {
	if owner, ok := t.shown[name]; ok {
		return owner, nil
	}
	of := t.prompts[name]
	if len(of) == 1 {
		return Owner{of[0], name}, nil
	}
	server, own, _ := strings.Cut(name, ".")
	if slices.Contains(t.prompts[own], server) {
		return Owner{server, own}, nil
	}
	return Owner{}, of
}

// kept are the schemes that stay in the names of what several servers have.
var kept = []string{"ui://", "skill://"}

const scheme = "dynmcp+"

// Scoped returns a server's URI with the server in it.
func Scoped(server, uri string) string {
	for _, kept := range kept {
		if rest, ok := strings.CutPrefix(uri, kept); ok {
			return kept + server + "+" + rest
		}
	}
	return scheme + server + "+" + uri
}

// scoped reads what Scoped returns.
func (t *Table) scoped(uri string) (server, own string, ok bool) {
	begin := scheme
	for _, kept := range kept {
		if strings.HasPrefix(uri, kept) {
			begin, own = kept, kept
		}
	}
	rest, ok := strings.CutPrefix(uri, begin)
	if !ok {
		return "", "", false
	}
	server, rest, ok = strings.Cut(rest, "+")
	return server, own + rest, ok && t.servers[server]
}

// IsWeb reports whether hosts can fetch a URI themselves.
func IsWeb(uri string) bool {
	return strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}

// Scoped returns the owner that a URI names, if it has a server in it.
func (t *Table) Scoped(uri string) (Owner, bool) {
	server, own, ok := t.scoped(uri)
	return Owner{server, own}, ok
}

// Resource returns the owner of a URI: the server in it; the one that lists it; the one with the most
// specific template for it; or the only one that lists anything with its scheme and authority. A
// template itself, as completion names it, belongs to its server. If several servers list it, or
// have such a template, they are returned instead.
func (t *Table) Resource(uri string) (_ Owner, several []string) {
	if owner, ok := t.Scoped(uri); ok {
		return owner, nil
	}
	of := t.Claims(uri)
	if len(of) == 0 {
		at, _ := authority(normal(uri))
		if of = t.authorities[at]; at == "" || len(of) > 1 {
			return Owner{}, nil
		}
	}
	if len(of) == 1 {
		return Owner{of[0], uri}, nil
	}
	return Owner{}, of
}

// Claims returns the servers that list a URI, or else those with the most specific template for it.
func (t *Table) Claims(uri string) []string {
	normalized := normal(uri)
	if of := t.uris[normalized]; of != nil {
		return of
	}
	if strings.Contains(uri, "{") {
		if of := t.shapes[shapeOf(uri)]; of != nil {
			return of
		}
	}
	var best *template
	var of owners
	for i := range t.templates {
		next := &t.templates[i]
		if best != nil && best.compare(*next) != 0 {
			break
		}
		if next.matches(normalized) {
			best, of = next, of.with(owners{next.server})
		}
	}
	return of
}

// Shown returns the URI that hosts are shown in place of a server's own in its results and definitions:
// with the server in it if the URI is also another server's. elsewhere is a server that is known to have
// it, besides what is listed; "" is none. It does not change what hosts can fetch themselves.
func (t *Table) Shown(server, uri, elsewhere string) string {
	if len(t.servers) < 2 {
		return uri
	}
	if _, ok := t.Scoped(uri); ok {
		return Scoped(server, uri)
	}
	switch of := t.Claims(uri); {
	case len(of) == 1 && of[0] == server, len(of) == 0 && (cmp.Or(elsewhere, server) == server || IsWeb(uri)):
		return uri
	}
	return Scoped(server, uri)
}

// viewURIs are the paths to the URI of a tool's view in its definition: of MCP Apps, of its drafts, and of
// the Apps SDK.
var viewURIs = [][]string{{"_meta", "ui", "resourceUri"}, {"_meta", "ui/resourceUri"}, {"_meta", "openai/outputTemplate"}}

// MayHaveView reports whether a definition may have such a URI.
func MayHaveView(definition json.RawMessage) bool {
	return bytes.Contains(definition, []byte("resourceUri")) || bytes.Contains(definition, []byte("outputTemplate"))
}

// ViewURI returns the URI of the view in the definition of a tool, "" if it has none.
func ViewURI(definition json.RawMessage) string {
	for _, path := range viewURIs {
		if uri, ok := wire.Text(wire.Get(definition, path...)); ok && strings.HasPrefix(uri, "ui://") {
			return uri
		}
	}
	return ""
}

// ShowViews returns the definition of a server's tool, or its result, with the URI of its view as hosts can read it: with
// the server in it, unless the server alone lists it.
func (t *Table) ShowViews(server string, definition json.RawMessage) json.RawMessage {
	if len(t.servers) < 2 || !MayHaveView(definition) {
		return definition
	}
	var edits []wire.Edit
	for _, path := range viewURIs {
		at := wire.Find(definition, path...)
		uri, ok := wire.Text(at.In(definition))
		if ok && strings.HasPrefix(uri, "ui://") && (len(t.Claims(uri)) == 0 || t.Shown(server, uri, "") != uri) {
			edits = append(edits, wire.Edit{Span: at, With: wire.Quote(Scoped(server, uri))})
		}
	}
	if edits == nil {
		return definition
	}
	return wire.Replace(definition, edits...)
}
