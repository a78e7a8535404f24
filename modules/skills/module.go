// Package skills keeps the skills of servers (the extension io.modelcontextprotocol/skills) with their
// listings, and lets hosts that do not know the extension find and read them with discover_tool.
package skills

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/catalog/names"
	"github.com/dynmcp/dynmcp/catalog/search"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
)

// Module has no key: servers that have no skills are not asked for any.
var Module = module.Module{Name: "skills", Start: func(module.Run) (module.Part, error) { return part{}, nil }}

const (
	id   = "io.modelcontextprotocol/skills"
	list = "skills/list"
)

const (
	found    = 3   // skills that an answer to a search has
	longLine = 200 // characters of one
)

// A part finds the skills of a run.
type part struct{ event.None }

// Follow implements module.Part.
func (part) Follow(*schema.Config) error { return nil }

// Lists implements extension.Follower.
func (part) Lists() []extension.List {
	return []extension.List{{Extension: id, Settings: json.RawMessage(`{"directoryRead":true}`), Method: list, Key: "skills"}}
}

// A skill is one that a server lists.
type skill struct {
	uri, name, description string
}

// of returns the skills of one server, or of all with "", with URIs that hosts can read.
func of(v *catalog.View, server string) (all []skill) {
	servers := v.Servers()
	for _, s := range servers {
		if server != "" && server != s.Name {
			continue
		}
		for _, raw := range v.More(s.Name, list) {
			var k skill
			k.uri, _ = wire.Text(wire.Get(raw, "uri"))
			k.name, _ = wire.Text(wire.Get(raw, "frontmatter", "name"))
			k.description, _ = wire.Text(wire.Get(raw, "frontmatter", "description"))
			if k.uri == "" {
				continue
			}
			if _, single := v.Single(); !single {
				k.uri = names.Scoped(s.Name, k.uri)
			}
			all = append(all, k)
		}
	}
	return all
}

// words counts the terms of a skill; those of the name count twice.
func (k skill) words() map[string]float64 {
	m := map[string]float64{}
	search.Words(k.description, func(w string) { m[w]++ })
	for _, w := range search.Terms(k.name) {
		m[w] += 2
	}
	return m
}

// Found implements extension.Finder: the best skills for queries, for a host that does not know skills.
func (part) Found(h extension.Host, queries []string, server string) string {
	if h.Declares(id) {
		return ""
	}
	best := search.Rank(strings.Join(queries, " "), of(h.View(), server), skill.words)
	if len(best) == 0 {
		return ""
	}
	lines := []string{`Skills of servers, which say how to do something; discover_tool {"tool_name": "skill://…"} reads one:`}
	for _, k := range best[:min(found, len(best))] {
		lines = append(lines, display.Cut(fmt.Sprintf("- %s: %s", display.Escape(k.uri), display.Fold(k.description)), longLine))
	}
	return strings.Join(lines, "\n")
}

// Shows implements extension.Finder: a skill, or another file of one, is read by its URI.
func (part) Shows(h extension.Host, name string) (uri string, ok bool) {
	if !strings.Contains(name, "://") {
		return "", false
	}
	name = display.Unescape(strings.TrimSpace(name))
	if strings.HasPrefix(name, "skill://") {
		return name, true
	}
	// The URIs of skills have any scheme. What is below a directory with a SKILL.md is part of it.
	return name, slices.ContainsFunc(of(h.View(), ""), func(k skill) bool {
		return name == k.uri || strings.HasPrefix(name, strings.TrimSuffix(k.uri, "SKILL.md")) && strings.HasSuffix(k.uri, "/SKILL.md")
	})
}
