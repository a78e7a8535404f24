package schema

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Files of hosts can be read as they are. Keys besides the servers, and keys that only a host
// can use, are left out with a warning. A host's spellings are converted to ours: those of the
// document here, those of an entry in hosts.go.

// A hostReader converts the files of hosts. keys are those of our entries.
type hostReader struct {
	*report
	keys []field
}

// document converts the document of a host into one of ours, whose keys are known, in place. A
// document that has servers under mcp is already ours.
func (r hostReader) document(root *syntax.Node, known []field) {
	if root.Kind != syntax.Object {
		return
	}
	r.renameHostServers(root)
	lists := 0
	for _, key := range ServerLists[1:] {
		n := root.Get(key)
		if n == nil || n.Kind != syntax.Object {
			continue
		}
		lists++
		bare := isGemini(root, n)
		for _, entry := range n.Members {
			r.hostReferences(syntax.Below(key, entry.Key), "", entry.Value, bare)
		}
	}
	if lists == 0 || len(root.MembersOf("mcp")) > 0 {
		return
	}
	var left []string
	var at syntax.Pos
	root.Members = slices.DeleteFunc(slices.Clone(root.Members), func(m syntax.Member) bool {
		if (hasKey(known, m.Key) || documentModules[m.Key] != "") && !(m.Key == "env" && m.Value.Kind != syntax.Text) {
			return false
		}
		if len(left) == 0 {
			at = m.At
		}
		left = append(left, m.Key)
		return true
	})
	if len(left) > 0 {
		r.warn(at, "", "the host's own keys are not read: "+strings.Join(left, ", "), "")
	}
}

// renameHostServers finds the servers of hosts that keep them elsewhere: Zed in
// context_servers, opencode in mcp or mcp.servers. Gemini CLI's mcp selects servers from
// mcpServers.
func (r hostReader) renameHostServers(root *syntax.Node) {
	root.Members = slices.Clone(root.Members)
	for i, m := range root.Members {
		switch {
		case m.Key == "context_servers" && !root.Has("mcpServers"):
			root.Members[i].Key, root.Members[i].Written = "mcpServers", m.Key
		case m.Key != "mcp" || m.Value.Kind != syntax.Object || root.Has("mcpServers") && !isGeminiChoice(m.Value):
		case isGeminiChoice(m.Value):
			r.geminiChoice(root.Get("mcpServers"), m.Value)
			root.Members = slices.Delete(root.Members, i, i+1)
			return
		case m.Value.Get("servers") != nil && m.Value.Get("servers").Get("command") == nil:
			root.Members[i] = syntax.Member{Key: "mcpServers", Written: "mcp.servers", At: m.At, Value: m.Value.Get("servers")}
		case slices.ContainsFunc(m.Value.Members, func(m syntax.Member) bool { return isOpencode(m.Value) }):
			root.Members[i].Key, root.Members[i].Written = "mcpServers", m.Key
		}
	}
}

// isOpencode reports whether an entry is written as opencode writes it.
func isOpencode(n *syntax.Node) bool {
	kind := n.Get("type")
	return kind != nil && (kind.Scalar == "local" || kind.Scalar == "remote")
}

// isGeminiChoice reports whether an object is the mcp of Gemini CLI.
func isGeminiChoice(n *syntax.Node) bool {
	return len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m syntax.Member) bool {
		return m.Key != "serverCommand" && m.Value.Kind != syntax.List || !slices.Contains([]string{"allowed", "excluded", "serverCommand"}, m.Key)
	})
}

// geminiChoice disables the servers that Gemini CLI does not use.
func (r hostReader) geminiChoice(servers, choice *syntax.Node) {
	named := func(key, name string) bool {
		return slices.ContainsFunc(choice.ItemsOf(key), func(n *syntax.Node) bool { return n.Scalar == name })
	}
	if servers == nil {
		return
	}
	for _, m := range servers.Members {
		if named("excluded", m.Key) || choice.Has("allowed") && !named("allowed", m.Key) {
			m.Value.Members = append(slices.Clone(m.Value.Members), syntax.Member{Key: "disabled", At: m.At, Value: &syntax.Node{Kind: syntax.Boolean, At: m.At, Scalar: "true"}})
		}
	}
}

// isGemini reports whether a document is Gemini CLI's, where $NAME is a reference.
func isGemini(root, servers *syntax.Node) bool {
	return slices.ContainsFunc([]string{"selectedAuthType", "general", "security", "theme"}, root.Has) || slices.ContainsFunc(servers.Members, func(m syntax.Member) bool {
		return m.Value.Has("httpUrl") || m.Value.Has("trust") || m.Value.Has("includeTools") || m.Value.Has("excludeTools")
	})
}

// hostReferences converts the references below n to ours, with warnings for those that only
// the host can resolve.
func (r hostReader) hostReferences(path, key string, n *syntax.Node, bare bool) {
	switch n.Kind {
	case syntax.Text:
		n.Scalar = reference.FromHost(n.Scalar, bare, func(note string) { r.warn(n.At, path, note, "") })
		if (strings.HasSuffix(key, ".env") || strings.HasSuffix(key, ".headers")) && !bare {
			n.Scalar = wholeReference().ReplaceAllString(n.Scalar, "${1}$${$2}")
		}
	case syntax.List:
		for i, item := range n.Items {
			r.hostReferences(syntax.Item(path, i), key, item, bare)
		}
	case syntax.Object:
		for _, m := range n.Members {
			r.hostReferences(syntax.Below(path, m.Key), path, m.Value, bare)
		}
	}
}

var wholeReference = lazyregexp.New(`^((?i:bearer )?)\$([A-Za-z_][A-Za-z0-9_]*)$`)
