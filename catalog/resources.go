package catalog

import (
	"encoding/json"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// entries are the resources, templates and prompts of all servers, as hosts see them.
type entries struct {
	names                         *names.Table
	resources, templates, prompts []json.RawMessage
}

func mergeEntries(parts []*serverView) (e entries) {
	lists := make([]names.List, len(parts))
	for i, p := range parts {
		lists[i].Server = p.server.Name
		if x := p.index; x != nil {
			lists[i].Resources, lists[i].Templates, lists[i].Prompts = x.resources, x.templates, x.prompts
			for _, list := range x.listing.More {
				for _, e := range list {
					if uri, ok := wire.Text(wire.Get(e, "uri")); ok {
						lists[i].Others = append(lists[i].Others, uri)
					}
				}
			}
		}
	}
	if len(parts) == 1 && parts[0].server.Single {
		e.names = names.Single(lists[0])
	} else {
		e.names = names.New(lists)
	}
	for _, l := range e.names.Lists {
		e.resources = appendRaw(e.resources, l.Resources)
		e.templates = appendRaw(e.templates, l.Templates)
		e.prompts = appendRaw(e.prompts, l.Prompts)
	}
	return e
}

func appendRaw(to []json.RawMessage, list []entry.Named) []json.RawMessage {
	for _, n := range list {
		to = append(to, n.Raw)
	}
	return to
}

// Names returns the names of the resources, templates and prompts.
func (e *entries) Names() *names.Table { return e.names }

// Resources returns the resources of all servers in config order. They are as listed, but for the names
// that Names changes. The slice is shared, as those of Templates and Prompts are.
func (e *entries) Resources() []json.RawMessage { return e.resources }

// Templates returns the resource templates of all servers.
func (e *entries) Templates() []json.RawMessage { return e.templates }

// Prompts returns the prompts of all servers.
func (e *entries) Prompts() []json.RawMessage { return e.prompts }

// Collisions says which names several servers list.
func (e *entries) Collisions() []string { return e.names.Clashes }

// listOf returns what a server lists, as hosts see it.
func (e *entries) listOf(server string) (found names.List) {
	for _, l := range e.names.Lists {
		if l.Server == server {
			return l
		}
	}
	return found
}
