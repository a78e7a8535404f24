package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// Hints are a surface's instructions for listing the tools and for loading a server. Load has
// %s for the server's name.
type Hints struct{ List, Load string }

// HowToLoad names the lazy servers without a listing and says how to load one, "" if there
// are none.
func (v Texts) HowToLoad(h Hints) string {
	unlisted := v.unlisted()
	if len(unlisted) == 0 {
		return ""
	}
	return fmt.Sprintf("Servers of which nothing is known: %s. To load one: %s.", joinServers(unlisted), fmt.Sprintf(h.Load, unlisted[0].server.Name))
}

// unlisted returns the lazy servers without a listing.
func (v Texts) unlisted() (all []*serverView) {
	for _, p := range v.lazy {
		if p.index == nil {
			all = append(all, p)
		}
	}
	return all
}

// WithUnlisted returns a description with the servers that may have more tools: lazy ones
// without a listing, ones that are starting, ones that could not be started. It names as many
// as fit into maxChars UTF-16 units; 0 or less is no limit.
func (v Texts) WithUnlisted(h Hints, s string, maxChars int) string {
	starting, down := startingAndDown(v.eager)
	groups := []struct {
		before string
		parts  []*serverView
		after  string
	}{
		{"Servers of which nothing is known: ", v.unlisted(), ". To load one: " + fmt.Sprintf(h.Load, "name") + "."},
		{"Servers still starting: ", starting, "."},
		{"Servers that could not be started: ", down, "."},
	}
	for n := len(v.parts); ; n-- {
		said := s
		for _, g := range groups {
			var names []string
			for _, p := range g.parts[:min(n, len(g.parts))] {
				names = append(names, display.Escape(p.server.Name)+p.note())
			}
			if more := len(g.parts) - len(names); more > 0 {
				names = append(names, display.Plural(more, "other"))
			}
			if len(names) > 0 {
				said += " " + g.before + strings.Join(names, ", ") + g.after
			}
		}
		if n == 0 || maxChars <= 0 || display.Units(said) <= maxChars {
			return said
		}
	}
}

// Counts returns how much there is: "1 tool", "2 resources", "3 prompts". Stored tools are
// counted without reading them.
func (v Texts) Counts() (tools, resources, prompts string) {
	n := 0
	for _, p := range v.parts {
		n += p.info.Tools
	}
	return display.Plural(n, "tool"), display.Plural(len(v.resources)+len(v.templates), "resource"), display.Plural(len(v.prompts), "prompt")
}

// UnknownTool answers a call of an unknown tool on the surface with these hints.
func (v Texts) UnknownTool(h Hints, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Unknown tool: %s\n", display.Asked(name))
	v.writeNear(&b, name)
	fmt.Fprintf(&b, "%s: %s.\n", display.Plural(len(v.all().tools), "tool"), h.List)
	if how := v.HowToLoad(h); how != "" {
		b.WriteString(how + "\n")
	}
	b.WriteString(v.NotListed("\n"))
	return strings.TrimSuffix(b.String(), "\n")
}

// List answers one of the lists of MCP, {key: [entries…]}, for one server or, with "", for
// all. Tools have their exposed names.
func (v *View) List(method, server string) json.RawMessage {
	key := map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	}[method]
	return fmt.Appendf(nil, `{%q:%s}`, key, wire.Array(v.Entries(key, server)))
}

// Entries returns the entries of a list of MCP, by its key in the result, of one server or,
// with "", of all. Tools have their exposed names.
func (v *View) Entries(key, server string) (all []json.RawMessage) {
	if key == "tools" {
		for _, t := range v.all().tools {
			if server == "" || t.Server == server {
				all = append(all, t.Definition())
			}
		}
		return all
	}
	for _, l := range v.names.Lists {
		if server != "" && l.Server != server {
			continue
		}
		list := l.Resources
		switch key {
		case "resourceTemplates":
			list = l.Templates
		case "prompts":
			list = l.Prompts
		}
		all = appendRaw(all, list)
	}
	return all
}
