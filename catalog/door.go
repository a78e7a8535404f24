package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A Door is a surface that takes requests as arguments, as its texts name what to do:
// how to list the tools there are, and how to load a server, %s.
type Door struct{ List, Load string }

// The doors.
var (
	Browser = Door{
		List: `mcp_discover {"jsonpath": "$.tools[*].name"}`,
		Load: `mcp_call {"method": "tools/list", "params": {"server": "%s"}}`,
	}
	Proxy = Door{
		List: `proxy {"action": "list", "type": "tool"}`,
		Load: `proxy {"action": "list", "type": "tool", "filter": {"prefix": "%s/"}}`,
	}
)

// load says how to load one of the servers that are not, "" if there are none.
func (d Door) load(v *View) string {
	unlisted := v.unlisted()
	if len(unlisted) == 0 {
		return ""
	}
	how := fmt.Sprintf(d.Load, "name")
	if len(unlisted) == 1 {
		how = fmt.Sprintf(d.Load, unlisted[0].server.Name)
	}
	return fmt.Sprintf("Servers not loaded yet: %s. To load one: %s.", joinServers(unlisted), how)
}

// unlisted are the servers to be loaded of which nothing is known.
func (v *View) unlisted() (all []*part) {
	for _, p := range v.lazy {
		if p.index == nil {
			all = append(all, p)
		}
	}
	return all
}

// withUnlisted adds to a description which servers may bring more: those to be loaded,
// those that are starting, those that could not be started; as many of their names as fit.
func (v *View) withUnlisted(s string, d Door, maxChars int) string {
	starting, down := startingAndDown(v.eager)
	groups := []struct {
		before string
		parts  []*part
		after  string
	}{
		{"Servers not loaded yet: ", v.unlisted(), ". To load one: " + fmt.Sprintf(d.Load, "name") + "."},
		{"Servers still starting: ", starting, "."},
		{"Servers that could not be started: ", down, "."},
	}
	for n := len(v.parts); ; n-- {
		said := s
		for _, g := range groups {
			var names []string
			for _, p := range g.parts[:min(n, len(g.parts))] {
				names = append(names, escape(p.server.Name)+p.note())
			}
			if more := len(g.parts) - len(names); more > 0 {
				names = append(names, plural(more, "other"))
			}
			if len(names) > 0 {
				said += " " + g.before + strings.Join(names, ", ") + g.after
			}
		}
		if n == 0 || maxChars <= 0 || Units(said) <= maxChars {
			return said
		}
	}
}

// countTools says how many tools there are, without reading those that are stored.
func (v *View) countTools() (n int) {
	for _, p := range v.parts {
		n += p.info.Tools
	}
	return n
}

// UnknownAt answers a call of a tool that does not exist, which came by a door.
func (v *View) UnknownAt(d Door, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Unknown tool: %s (outcome not_sent: nothing was called)\n", cut(fold(name), nameShown))
	v.writeNear(&b, name)
	fmt.Fprintf(&b, "%s: %s.\n", plural(len(v.all().tools), "tool"), d.List)
	if how := d.load(v); how != "" {
		b.WriteString(how + "\n")
	}
	b.WriteString(v.notListed("\n"))
	return strings.TrimSuffix(b.String(), "\n")
}

// ListInside answers one of the lists of MCP: {key: [entries…]}, of one server or with
// "" of all. Tools have the names by which they are called here.
func (v *View) ListInside(method, server string) json.RawMessage {
	key := map[string]string{
		"tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates",
	}[method]
	out := fmt.Appendf(nil, `{%q:[`, key)
	for i, e := range v.entriesOf(key, server) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	return append(out, "]}"...)
}

func (v *View) entriesOf(key, server string) (all []json.RawMessage) {
	if key == "tools" {
		for _, t := range v.all().tools {
			if server == "" || t.Server == server {
				all = append(all, v.Definition(t))
			}
		}
		return all
	}
	for _, p := range v.parts {
		if p.index == nil || server != "" && p.server.Name != server {
			continue
		}
		list, owner := p.index.resources, v.resourceOwner
		switch key {
		case "resourceTemplates":
			list, owner = p.index.templates, v.templateOwner
		case "prompts":
			list, owner = p.index.prompts, v.promptOwner
		}
		for _, n := range list {
			if owner[n.id] == p.server.Name {
				all = append(all, n.raw)
			}
		}
	}
	return all
}
