package catalog

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
)

// Guess finds the tool that a name means which is no tool's own: one written
// server__tool, server_tool, server.tool or server:tool, with the mcp__ that some hosts put in
// front, or in another case. If several tools match, none is returned.
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

// Spelled reports whether a name is one of the tool's, as models write them.
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
var separators = []string{"/", "__", "_", ".", ":"}

// OfLeaf finds the only tool that has a name without its server's, in any case.
func (v *View) OfLeaf(name string) (*Tool, bool) {
	return only(v.all().tools, func(t *Tool) bool {
		return t.Name != t.Leaf && (strings.EqualFold(name, t.Leaf) || strings.EqualFold(name, t.Upstream))
	})
}

// Alike compares names of servers, which may be written in another case, or with _ in
// the place of -.
func Alike(a, b string) bool {
	return strings.EqualFold(strings.ReplaceAll(a, "_", "-"), strings.ReplaceAll(b, "_", "-"))
}

// Called finds the tool that a name calls where programs write it: by its own name, or as
// what it can only mean. A name without a server can mean only one when all are known.
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

// ServerFor is ServerOf, and if there is but one server that one.
func (v *View) ServerFor(name string) string {
	if server := v.ServerOf(name); server != "" || len(v.parts) != 1 {
		return server
	}
	return v.parts[0].server.Name
}

// ServerOf returns the offered server whose tool a name would be, "" if there is
// none: in single-wrap mode the one there is.
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

// GuessServer returns the offered server that a name means: the one of that name,
// or the only one of it in another case or with _ in place of -.
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

// nearestServer returns the offered server whose name is most like another, ""
// if none is.
func (v *View) nearestServer(name string) string {
	asked := []rune(strings.ToLower(display.Prefix(name, maxName)))
	best, score := "", 0.6
	for _, p := range v.parts {
		if s := Closeness(asked, p.server.Name); s > score {
			best, score = p.server.Name, s
		}
	}
	return best
}
