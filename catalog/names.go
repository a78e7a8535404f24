package catalog

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
	"github.com/dynmcp/dynmcp/internal/nearest"
)

// Guess finds the tool that an inexact name means: one written server__tool, server_tool,
// server.tool or server:tool, with the prefix mcp__ of some hosts, or in another case. It
// finds none if several match.
func (v *View) Guess(name string) (*Tool, bool) {
	name = strings.TrimPrefix(display.Unescape(strings.TrimSpace(name)), "mcp__")
	return only(v.all().tools, func(t *Tool) bool { return t.Spelled(name) })
}

// only returns the element that fits, and whether exactly one does.
func only[T any](all []T, fits func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(all, fits)
	if i < 0 || slices.ContainsFunc(all[i+1:], fits) {
		return found, false
	}
	return all[i], true
}

// Spelled reports whether name is one of the spellings that models use for the tool's name.
func (t *Tool) Spelled(name string) bool {
	if strings.EqualFold(name, t.Name) || strings.EqualFold(name, t.Direct) {
		return true
	}
	if len(name) < len(t.Server) || !Alike(name[:len(t.Server)], t.Server) {
		return false
	}
	for _, separator := range separators {
		if leaf, ok := strings.CutPrefix(name[len(t.Server):], separator); ok && strings.EqualFold(leaf, t.Leaf) {
			return true
		}
	}
	return false
}

// separators are what models write between the name of a server and of a tool.
var separators = []string{"/", "__", "_", ".", "::", ":"}

// OfLeaf finds a tool by its name without the server, in any case, if only one has it.
func (v *View) OfLeaf(name string) (*Tool, bool) {
	return only(v.all().tools, func(t *Tool) bool {
		return t.Name != t.Leaf && (strings.EqualFold(name, t.Leaf) || strings.EqualFold(name, t.Upstream))
	})
}

// Alike reports whether two names of servers are equal except for case and _ in place of -.
func Alike(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}

// Called finds the tool that a name in a program means: the exact name, or the only tool that
// it can mean. A name without a server counts only if all tools are known.
func (v *View) Called(name string) (*Tool, bool) {
	t, ok := v.Tool(name)
	if !ok {
		t, ok = v.Guess(name)
	}
	if !ok && v.Complete() {
		t, ok = v.OfLeaf(name)
	}
	return t, ok
}

// ServerFor is ServerOf, but the only server of a view is the default.
func (v *View) ServerFor(name string) string {
	if server := v.ServerOf(name); server != "" || len(v.parts) != 1 {
		return server
	}
	return v.parts[0].server.Name
}

// ServerOf returns the offered server that a name of a tool begins with, "" if there is none.
// In single-wrap mode it is always the one server.
func (v *View) ServerOf(name string) string {
	if p := v.single(); p != nil {
		return p.server.Name
	}
	if server, _, ok := strings.Cut(name, "/"); ok && v.server[server] != nil {
		return server
	}
	name = strings.TrimPrefix(display.Unescape(strings.TrimSpace(name)), "mcp__")
	longest := ""
	for _, p := range v.parts {
		server := p.server.Name
		if len(server) <= len(longest) || len(name) <= len(server) || !Alike(name[:len(server)], server) {
			continue
		}
		for _, separator := range separators {
			if strings.HasPrefix(name[len(server):], separator) {
				longest = server
			}
		}
	}
	return longest
}

// PrefixIn returns the beginning of tools' names that a prefix means: prefix itself if a name begins
// with it, or else the one with the server's name and a slash where prefix spells those differently.
func PrefixIn(v *View, prefix string) string {
	server := v.ServerOf(prefix)
	if server == "" || v.single() != nil || strings.HasPrefix(prefix, server+"/") || slices.ContainsFunc(v.all().tools, func(t *Tool) bool { return strings.HasPrefix(t.Name, prefix) }) {
		return prefix
	}
	spelled := strings.TrimPrefix(display.Unescape(strings.TrimSpace(prefix)), "mcp__")
	if len(spelled) < len(server) {
		return prefix
	}
	for _, separator := range separators {
		if rest, ok := strings.CutPrefix(spelled[len(server):], separator); ok {
			return server + "/" + rest
		}
	}
	return prefix
}

// GuessServer returns the offered server that a name means: the one of that name, or else the
// only one that is Alike.
func (v *View) GuessServer(name string) (string, bool) {
	if _, ok := v.server[name]; ok {
		return name, true
	}
	if p := v.single(); p != nil && name == p.called() {
		return p.server.Name, true
	}
	meant, ok := only(v.parts, func(p *serverView) bool { return Alike(p.server.Name, strings.TrimSpace(name)) })
	if !ok {
		return "", false
	}
	return meant.server.Name, true
}

// nearestServer returns the offered server whose name is most similar, "" if none is similar.
func nearestServer(v *View, name string) string {
	asked := []rune(strings.ToLower(display.Prefix(name, entry.MaxName)))
	best, score := "", 0.6
	for _, p := range v.parts {
		if s := nearest.Closeness(asked, p.server.Name); s > score {
			best, score = p.server.Name, s
		}
	}
	return best
}
