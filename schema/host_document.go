package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// The files of hosts are read as they are. What they keep beside the servers, and
// what only a host can act on, is left out with a warning; what a host writes in
// another way is read as if it were written in ours. This file does so for the
// document, hosts.go for an entry.

// A hostReader reads what hosts write.
type hostReader struct{ *report }

// document turns the document of a host into one of ours, in place. A document
// that has servers under mcp is ours.
func (r hostReader) document(root *node) {
	if root.kind != object {
		return
	}
	r.renameHostServers(root)
	lists := 0
	for _, key := range serverLists[1:] {
		n := root.get(key)
		if n == nil || n.kind != object {
			continue
		}
		lists++
		bare := isGemini(root, n)
		for _, entry := range n.members {
			r.hostReferences(below(key, entry.key), "", entry.value, bare)
		}
	}
	if lists == 0 || len(root.membersOf("mcp")) > 0 {
		return
	}
	var left []string
	var at pos
	root.members = slices.DeleteFunc(slices.Clone(root.members), func(m member) bool {
		if hasKey(documentFields, m.key) && !(m.key == "env" && m.value.kind != text) {
			return false
		}
		if len(left) == 0 {
			at = m.at
		}
		left = append(left, m.key)
		return true
	})
	if len(left) > 0 {
		r.warn(at, "", "the host's own keys are not read: "+strings.Join(left, ", "), "")
	}
}

// renameHostServers finds the servers of hosts that keep them elsewhere: Zed in
// context_servers, opencode in mcp or mcp.servers. Gemini CLI's mcp says which of
// mcpServers are used.
func (r hostReader) renameHostServers(root *node) {
	root.members = slices.Clone(root.members)
	for i, m := range root.members {
		switch {
		case m.key == "context_servers" && !root.has("mcpServers"):
			root.members[i].key, root.members[i].written = "mcpServers", m.key
		case m.key != "mcp" || m.value.kind != object || root.has("mcpServers") && !isGeminiChoice(m.value):
		case isGeminiChoice(m.value):
			r.geminiChoice(root.get("mcpServers"), m.value)
			root.members = slices.Delete(root.members, i, i+1)
			return
		case m.value.get("servers") != nil && m.value.get("servers").get("command") == nil:
			root.members[i] = member{key: "mcpServers", written: "mcp.servers", at: m.at, value: m.value.get("servers")}
		case slices.ContainsFunc(m.value.members, func(m member) bool { return isOpencode(m.value) }):
			root.members[i].key, root.members[i].written = "mcpServers", m.key
		}
	}
}

// isOpencode reports whether an entry is written as opencode writes it.
func isOpencode(n *node) bool {
	kind := n.get("type")
	return kind != nil && (kind.scalar == "local" || kind.scalar == "remote")
}

// isGeminiChoice reports whether an object is Gemini CLI's mcp.
func isGeminiChoice(n *node) bool {
	return len(n.members) > 0 && !slices.ContainsFunc(n.members, func(m member) bool {
		return m.key != "serverCommand" && m.value.kind != list || !slices.Contains([]string{"allowed", "excluded", "serverCommand"}, m.key)
	})
}

// geminiChoice disables the servers that Gemini CLI does not use.
func (r hostReader) geminiChoice(servers, choice *node) {
	named := func(key, name string) bool {
		return slices.ContainsFunc(choice.itemsOf(key), func(n *node) bool { return n.scalar == name })
	}
	if servers == nil {
		return
	}
	for _, m := range servers.members {
		if named("excluded", m.key) || choice.has("allowed") && !named("allowed", m.key) {
			m.value.members = append(slices.Clone(m.value.members), member{key: "disabled", at: m.at, value: &node{kind: boolean, at: m.at, scalar: "true"}})
		}
	}
}

// isGemini reports whether a document is Gemini CLI's, where $NAME is a reference.
func isGemini(root, servers *node) bool {
	return slices.ContainsFunc([]string{"selectedAuthType", "general", "security", "theme"}, root.has) || slices.ContainsFunc(servers.members, func(m member) bool {
		return m.value.has("httpUrl") || m.value.has("trust") || m.value.has("includeTools") || m.value.has("excludeTools")
	})
}

// hostReferences writes the references below n as ours, with warnings for those
// that only the host knows.
func (r hostReader) hostReferences(path, key string, n *node, bare bool) {
	switch n.kind {
	case text:
		n.scalar = HostReferences(n.scalar, bare, func(note string) { r.warn(n.at, path, note, "") })
		if (strings.HasSuffix(key, ".env") || strings.HasSuffix(key, ".headers")) && !bare {
			n.scalar = wholeReference().ReplaceAllString(n.scalar, "${1}$${$2}")
		}
	case list:
		for i, item := range n.items {
			r.hostReferences(at(path, i), key, item, bare)
		}
	case object:
		for _, m := range n.members {
			r.hostReferences(below(path, m.key), path, m.value, bare)
		}
	}
}

var (
	envReference   = lazyregexp.New(`\$?\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputReference = lazyregexp.New(`\$?\$\{input:([^}]+)\}`)
	fileReference  = lazyregexp.New(`\{file:[^}]+\}`)
	bareReference  = lazyregexp.New(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	wholeReference = lazyregexp.New(`^((?i:bearer )?)\$([A-Za-z_][A-Za-z0-9_]*)$`)
	pathReference  = lazyregexp.New(`\$?\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}`)
	notInVariable  = lazyregexp.New(`[^A-Za-z0-9_]+`)
)

// HostReferences returns a text of a host's file with its references to variables
// as this package writes them: ${env:NAME}, {env:NAME}, ${input:id} and, with bare,
// $NAME. In place of ${workspaceFolder} and its like it puts what the host would, if
// the working directory were its project. note is told of what is otherwise than in
// the host.
func HostReferences(text string, bare bool, note func(string)) string {
	text = envReference().ReplaceAllStringFunc(text, func(reference string) string {
		if strings.HasPrefix(reference, "$$") { // not one, by our rules
			return reference
		}
		return "${" + envReference().FindStringSubmatch(reference)[1] + "}"
	})
	text = inputReference().ReplaceAllStringFunc(text, func(reference string) string {
		if strings.HasPrefix(reference, "$$") {
			return reference
		}
		id := inputReference().FindStringSubmatch(reference)[1]
		name := VariableName(id)
		note(fmt.Sprintf("the host asks for %s; dynmcp takes it from the variable %s", id, name))
		return "${" + name + "}"
	})
	if fileReference().MatchString(text) {
		note("{file:…} is not read; use a variable")
	}
	if bare {
		text = bareReference().ReplaceAllString(text, "$${$1}")
	}
	return pathReference().ReplaceAllStringFunc(text, func(reference string) string {
		if strings.HasPrefix(reference, "$$") {
			return reference
		}
		path := hostPath(reference)
		note(fmt.Sprintf("%s is only known to the host; here it is %s", reference, path))
		return path
	})
}

// hostPath returns what VS Code and Cursor would put in the place of a reference.
func hostPath(reference string) string {
	dir, _ := os.Getwd()
	switch reference {
	case "${userHome}":
		home, _ := os.UserHomeDir()
		return home
	case "${workspaceFolder}":
		return dir
	case "${workspaceFolderBasename}":
		return filepath.Base(dir)
	default:
		return string(filepath.Separator)
	}
}

// VariableName makes the name of a variable of any text.
func VariableName(text string) string {
	return strings.ToUpper(strings.Trim(notInVariable().ReplaceAllString(text, "_"), "_"))
}
