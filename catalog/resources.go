package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
)

// entries are the merged resources, templates and prompts of all servers.
type entries struct {
	resources, templates, prompts []json.RawMessage

	resourceOwner, templateOwner, promptOwner map[string]string // URI, template, name → server

	routes     []route // longest first
	collisions []string
}

// route sends the URIs of a template to its server.
type route struct {
	prefix string // the template's text before its first "{"
	exact  bool   // the template has no "{": only this URI
	server string
}

func mergeEntries(parts []*serverView) entries {
	e := entries{
		resourceOwner: map[string]string{},
		templateOwner: map[string]string{},
		promptOwner:   map[string]string{},
	}
	for _, p := range parts {
		if p.index == nil {
			continue
		}
		server := p.server.Name
		e.resources = append(e.resources, e.claim("resource URI", server, p.index.resources, e.resourceOwner)...)
		e.templates = append(e.templates, e.claim("resource template", server, p.index.templates, e.templateOwner)...)
		e.prompts = append(e.prompts, e.claim("prompt name", server, p.index.prompts, e.promptOwner)...)
		e.addRoutes(server, p.index.templates)
	}
	// Stable: of equal prefixes the first in config order matches first.
	slices.SortStableFunc(e.routes, func(a, b route) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return e
}

// claim returns the entries of one server that no earlier server has, and records their
// owner. Duplicates in one listing stay.
func (e *entries) claim(kind, server string, list []entry.Named, owner map[string]string) []json.RawMessage {
	var kept []json.RawMessage
	for _, n := range list {
		if first, taken := owner[n.ID]; taken && first != server {
			e.collisions = append(e.collisions,
				fmt.Sprintf("%s collision: %s of %s is hidden by that of %s", kind, display.Name(n.ID), server, first))
			continue
		}
		owner[n.ID] = server
		kept = append(kept, n.Raw)
	}
	return kept
}

func (e *entries) addRoutes(server string, templates []entry.Named) {
	for _, n := range templates {
		prefix, _, pattern := strings.Cut(n.ID, "{")
		if prefix != "" { // without a literal start it would match everything
			e.routes = append(e.routes, route{prefix, !pattern, server})
		}
	}
}

// Resources returns the resources of all servers, verbatim, in config order.
// The slice is shared, as those of Templates and Prompts are.
func (e *entries) Resources() []json.RawMessage { return e.resources }

// Templates returns the resource templates of all servers.
func (e *entries) Templates() []json.RawMessage { return e.templates }

// Prompts returns the prompts of all servers.
func (e *entries) Prompts() []json.RawMessage { return e.prompts }

// ResourceOwner returns the server that a URI belongs to: the one that lists
// it, or else the one with the longest template that matches its start. A
// template itself, as completion names it, belongs to its server.
func (e *entries) ResourceOwner(uri string) (server string, ok bool) {
	if server, ok = e.resourceOwner[uri]; ok {
		return server, true
	}
	if server, ok = e.templateOwner[uri]; ok {
		return server, true
	}
	for _, r := range e.routes {
		if uri == r.prefix || !r.exact && strings.HasPrefix(uri, r.prefix) {
			return r.server, true
		}
	}
	return "", false
}

// PromptOwner returns the server that a prompt belongs to.
func (e *entries) PromptOwner(name string) (server string, ok bool) {
	server, ok = e.promptOwner[name]
	return server, ok
}

// Collisions says which resources and prompts are hidden by another server's.
func (e *entries) Collisions() []string { return e.collisions }
