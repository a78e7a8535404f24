package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// serverKeys are the top-level keys of which a config needs at least one.
var serverKeys = []string{"mcp", "mcpServers", "servers", "tree"}

// maxInstructions is the most characters of the instructions of a config: hosts cut all instructions together
// at about 2,000.
const maxInstructions = 1000

var documentFields = fieldsOf(reflect.TypeFor[Document]())

// newConfig returns the config of a document, without its servers and profiles.
func newConfig(doc *Document) *Config {
	return &Config{
		Env:          doc.Env,
		Defaults:     doc.Defaults,
		Expose:       doc.Expose,
		UseTool:      doc.UseTool,
		Pin:          doc.Pin,
		Tree:         doc.Tree,
		Catalog:      doc.Catalog,
		Gateway:      doc.Gateway,
		Scripts:      doc.Scripts,
		Host:         doc.Host,
		Instructions: doc.Instructions,
		StartupWait:  doc.StartupWait,
	}
}

// serversInOrder returns the servers of all keys in the order of the file.
func (d *Document) serversInOrder(r *reading) []Server {
	servers := slices.Concat(d.MCP, d.MCPServers, d.Servers)
	slices.SortStableFunc(servers, func(a, b Server) int {
		return r.positions[a.Name].Compare(r.positions[b.Name])
	})
	return servers
}

func (r *reading) decodeDocument(root *syntax.Node) *Document {
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
	r.unknownKeys("", root, withSections(documentFields, r.known, false), documentModules)
	r.members("", root, v, documentFields)
	decodeSections(r, root)
	r.checkExpose(root, &doc)
	r.checkPins(root, &doc)
	r.checkGateway(root.Get("gateway"))
	if n := root.Get("scripts"); n != nil && LacksSurface(r.known, ExposeScript) != "" {
		r.fail(n.At, "scripts", lacksModule("key", surfaceModules[ExposeScript]), "use a build with it, or remove the key")
	}
	if n := root.Get("tree"); n != nil && LacksSurface(r.known, ExposeTree) != "" {
		r.fail(n.At, "tree", lacksModule("key", surfaceModules[ExposeTree]), "use a build with it, or remove the key")
	}
	r.checkScripts(root.Get("scripts"))
	checkProfiles(r, root, doc.Profiles)
	if n := root.Get("instructions"); isKnownText(n) && utf8.RuneCountInString(n.Scalar) > maxInstructions {
		r.fail(n.At, "instructions", fmt.Sprintf("this has more than %d characters", maxInstructions), "hosts cut longer texts without a word: shorten it")
	}
	return &doc
}

// looksLikeConfig distinguishes a config from other JSON or YAML files, for which it reports
// one error instead of one for each key.
func (r *reading) looksLikeConfig(root *syntax.Node) bool {
	switch root.Kind {
	case syntax.Object:
	case syntax.Null:
		r.fail(root.At, "", "there is nothing in the file", syntax.EmptyHint)
		return false
	default:
		r.fail(root.At, "", "the file holds "+root.Kind.String(), "a config is an object with mcp in it")
		return false
	}
	if r.layered || slices.ContainsFunc(serverKeys, root.Has) {
		return true
	}
	var strange []string
	for _, m := range root.Members {
		if nearest.Word(m.Key, serverKeys) != "" {
			return true // reported as unknown, with a suggestion
		}
		if !hasKey(withSections(documentFields, r.known, false), m.Key) {
			strange = append(strange, m.Key)
		}
	}
	what := "there are no servers"
	if len(strange) > 0 {
		what = fmt.Sprintf("this does not look like a config, it has %q", strange[0])
	}
	r.fail(root.At, "", what, "want mcp, mcpServers, servers or tree with servers in it")
	return len(strange) == 0
}

func (r *reading) checkExpose(root *syntax.Node, doc *Document) {
	n := root.Get("expose")
	switch {
	case n == nil:
		if root.Has("tree") && !root.Has("mcp") && !root.Has("mcpServers") && !root.Has("servers") {
			doc.Expose = []string{ExposeTree}
		}
	case n.Kind == syntax.List && len(n.Items) == 0:
		r.fail(n.At, "expose", "nothing is exposed", "name a surface or leave the key out")
	}
	if root.Has("tree") && r.nearest && !r.layered && !slices.Contains(doc.Expose, ExposeTree) {
		r.warn(root.Get("tree").At, "tree", "no host sees the tree", `add "tree" to expose`)
	}
	checkSurfaces(r, "expose", n, doc.Expose)
}

// checkSurfaces checks a list of surfaces, at a node, for conflicts, and that the program has them.
func checkSurfaces(r *reading, path string, n *syntax.Node, expose []string) {
	for i, surface := range expose {
		if what := LacksSurface(r.known, surface); what != "" && n != nil {
			r.fail(n.Items[i].At, syntax.Item(path, i), what, "use a build with it, or name another surface")
		}
		if first := slices.Index(expose, surface); first < i && surface != "" {
			r.fail(n.Items[i].At, syntax.Item(path, i), fmt.Sprintf("%q is listed twice", surface), "remove one of them")
		}
		if problem := autoBeside(expose, surface); problem != "" {
			r.fail(n.Items[i].At, syntax.Item(path, i), problem, "remove one of them")
		}
	}
}

// CheckExpose returns an error if a list of known surfaces is invalid.
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

// checkPins checks the keys that affect only discover.
func (r *reading) checkPins(root *syntax.Node, doc *Document) {
	for _, key := range []string{"use_tool", "pin"} {
		if root.Has(key) && r.nearest && !r.layered && !slices.Contains(doc.Expose, ExposeDiscover) && !slices.Contains(doc.Expose, ExposeAuto) {
			r.warn(root.Get(key).At, key, "only discover acts on this key", `add "discover" to expose`)
		}
	}
	for i, item := range root.ItemsOf("pin") {
		if !isKnownText(item) {
			continue
		}
		server, tool, found := strings.Cut(item.Scalar, "/")
		switch {
		case !found || server == "" || tool == "":
			r.fail(item.At, syntax.Item("pin", i), "this is not the name of a tool", "write it like files/read_file")
		case !root.Has("tree"): // its servers get their names later
			r.checkMountedServer(syntax.Item("pin", i), item, server)
		}
	}
}

// isKnownText reports whether n is a string whose variables are all defined. Only then can
// its content be checked.
func isKnownText(n *syntax.Node) bool {
	return n != nil && n.Kind == syntax.Text && !n.Unresolved
}
