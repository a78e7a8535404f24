package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// serverKeys are the top-level keys of which a config has at least one.
var serverKeys = []string{"mcp", "mcpServers", "servers", "tree"}

// directWait is how long the lists wait when tools are exposed directly: a
// tool that is not in the first list is one that some hosts never see.
const directWait = 25 * time.Second

// configOf is the config that a document describes, but for its servers.
func configOf(doc *Document) *Config {
	return &Config{
		Env:         doc.Env,
		Defaults:    doc.Defaults,
		Expose:      doc.Expose,
		Tree:        doc.Tree,
		Catalog:     doc.Catalog,
		Gateway:     doc.Gateway,
		StartupWait: doc.StartupWait,
	}
}

// all are the servers of the document in the order of its file.
func (d *Document) all(r *reading) []Server {
	servers := slices.Concat(d.MCP, d.MCPServers, d.Servers)
	slices.SortStableFunc(servers, func(a, b Server) int {
		return r.places[a.Name].compare(r.places[b.Name])
	})
	return servers
}

func (r *reading) decodeDocument(root *node) *Document {
	var doc Document
	v := reflect.ValueOf(&doc).Elem()
	preset(v)
	if n := len(r.behind); n > 0 {
		doc.Defaults = r.behind[n-1].doc.Defaults
	}
	r.template = doc.Defaults
	if !r.looksLikeConfig(root) {
		return &doc
	}
	r.object("", root, v, fieldsOf(v.Type()))
	r.checkExpose(root, &doc)
	r.checkGateway(root.get("gateway"))
	if !root.has("startup_wait") && slices.Contains(doc.Expose, ExposeDirect) {
		doc.StartupWait = directWait
	}
	return &doc
}

// looksLikeConfig tells a config from other files that happen to be JSON or
// YAML. About those it says one thing instead of one for each of their keys.
func (r *reading) looksLikeConfig(root *node) bool {
	switch root.kind {
	case object:
	case null:
		r.fail(root.at, "", "there is nothing in the file", emptyHint)
		return false
	default:
		r.fail(root.at, "", "the file holds "+root.kind.String(), "a config is an object with mcp in it")
		return false
	}
	if r.layered || slices.ContainsFunc(serverKeys, root.has) {
		return true
	}
	known := keysOf(fieldsOf(reflect.TypeFor[Document]()))
	var strange []string
	for _, m := range root.members {
		if nearest(m.key, serverKeys) != "" {
			return true // reported as unknown, with what was meant
		}
		if !slices.Contains(known, m.key) {
			strange = append(strange, m.key)
		}
	}
	what := "there are no servers"
	if len(strange) > 0 {
		what = fmt.Sprintf("this does not look like a config, it has %q", strange[0])
	}
	r.fail(root.at, "", what, "want mcp, mcpServers, servers or tree with servers in it")
	return len(strange) == 0
}

func (r *reading) checkExpose(root *node, doc *Document) {
	n := root.get("expose")
	switch {
	case n == nil:
		if root.has("tree") && !root.has("mcp") && !root.has("mcpServers") && !root.has("servers") {
			doc.Expose = []string{ExposeTree}
		}
	case n.kind == list && len(n.items) == 0:
		r.fail(n.at, "expose", "nothing is exposed", "name a surface or leave the key out")
	}
	for i, surface := range doc.Expose {
		if first := slices.Index(doc.Expose, surface); first < i && surface != "" {
			r.fail(n.items[i].at, at("expose", i), fmt.Sprintf("%q is here twice", surface), "remove one of them")
		}
	}
}

// usable reports whether n is a text whose value is known, which is what
// checks beyond its type need.
func usable(n *node) bool {
	return n != nil && n.kind == text && !n.unresolved
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
