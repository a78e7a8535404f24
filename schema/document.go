package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// serverKeys are the top-level keys of which a config needs at least one.
var serverKeys = []string{"mcp", "mcpServers", "servers", "tree"}

// DirectWait is how long the lists wait when tools are exposed directly: a
// tool that is not in the first list is one that some hosts never see.
const DirectWait = 25 * time.Second

var documentFields = fieldsOf(reflect.TypeFor[Document]())

// newConfig returns the config of a document, without its servers.
func newConfig(doc *Document) *Config {
	return &Config{
		Env:         doc.Env,
		Defaults:    doc.Defaults,
		Expose:      doc.Expose,
		UseTool:     doc.UseTool,
		Pin:         doc.Pin,
		Tree:        doc.Tree,
		Catalog:     doc.Catalog,
		Gateway:     doc.Gateway,
		Host:        doc.Host,
		StartupWait: doc.StartupWait,
	}
}

// serversInOrder returns the servers of all keys in the order of the file.
func (d *Document) serversInOrder(r *reading) []Server {
	servers := slices.Concat(d.MCP, d.MCPServers, d.Servers)
	slices.SortStableFunc(servers, func(a, b Server) int {
		return r.positions[a.Name].compare(r.positions[b.Name])
	})
	return servers
}

func (r *reading) decodeDocument(root *node) *Document {
	var doc Document
	v := reflect.ValueOf(&doc).Elem()
	setDefaults(v)
	if n := len(r.behind); n > 0 {
		doc.Defaults = r.behind[n-1].doc.Defaults
	}
	r.template = doc.Defaults
	if !r.looksLikeConfig(root) {
		return &doc
	}
	r.object("", root, v, documentFields)
	r.checkExpose(root, &doc)
	r.checkPins(root, &doc)
	checks{&r.report}.checkGateway(root.get("gateway"))
	if !root.has("startup_wait") && slices.Contains(doc.Expose, ExposeDirect) {
		doc.StartupWait = DirectWait
	}
	return &doc
}

// looksLikeConfig tells a config from other files that happen to be JSON or
// YAML: for those it reports one error instead of one for each key.
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
	var strange []string
	for _, m := range root.members {
		if Nearest(m.key, serverKeys) != "" {
			return true // reported as unknown, with what was meant
		}
		if !hasKey(documentFields, m.key) {
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
	if root.has("tree") && r.nearest && !r.layered && !slices.Contains(doc.Expose, ExposeTree) {
		r.warn(root.get("tree").at, "tree", "no host sees the tree", `add "tree" to expose`)
	}
	for i, surface := range doc.Expose {
		if first := slices.Index(doc.Expose, surface); first < i && surface != "" {
			r.fail(n.items[i].at, at("expose", i), fmt.Sprintf("%q is listed twice", surface), "remove one of them")
		}
		if problem := autoBeside(doc.Expose, surface); problem != "" {
			r.fail(n.items[i].at, at("expose", i), problem, "remove one of them")
		}
	}
}

// CheckExpose returns what is wrong with a list of known surfaces, nil if nothing is.
func CheckExpose(expose []string) error {
	for _, surface := range expose {
		if problem := autoBeside(expose, surface); problem != "" {
			return errors.New(problem)
		}
	}
	return nil
}

func autoBeside(expose []string, surface string) string {
	if (surface == ExposeDiscover || surface == ExposeDirect) && slices.Contains(expose, ExposeAuto) {
		return fmt.Sprintf("%q is beside %q, which is discover or direct by the host", surface, ExposeAuto)
	}
	return ""
}

func showsDiscover(expose []string) bool {
	return slices.Contains(expose, ExposeDiscover) || slices.Contains(expose, ExposeAuto)
}

// checkPins checks the keys that only discover acts on.
func (r *reading) checkPins(root *node, doc *Document) {
	for _, key := range []string{"use_tool", "pin"} {
		if root.has(key) && r.nearest && !r.layered && !showsDiscover(doc.Expose) {
			r.warn(root.get(key).at, key, "only discover acts on this key", `add "discover" to expose`)
		}
	}
	for i, item := range root.itemsOf("pin") {
		if !isKnownText(item) {
			continue
		}
		server, tool, found := strings.Cut(item.scalar, "/")
		switch {
		case !found || server == "" || tool == "":
			r.fail(item.at, at("pin", i), "this is not the name of a tool", "write it like files/read_file")
		case !root.has("tree"): // whose servers get their names later
			r.checkMountedServer(at("pin", i), item, server)
		}
	}
}

// isKnownText reports whether n is a string all of whose variables are defined.
// Only then can its content be checked.
func isKnownText(n *node) bool {
	return n != nil && n.kind == text && !n.unresolved
}
