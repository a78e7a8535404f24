package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expansion is a string with its references replaced.
type expansion struct {
	text       string
	expanded   bool     // there was a reference
	values     []string // of variables that were inserted; defaults are not among them
	missing    []string // undefined variables without a default
	unexpanded bool     // a ${…} that is not a reference is left as it is
	nested     bool     // a default contains a ${…}
}

// expand replaces ${NAME} and ${NAME:-default} in s. Values are not expanded
// again. The default also replaces an empty variable. $${…} is an escaped ${…}.
// Everything else, a lone $ and an unclosed ${ included, stays as it is.
func expand(s string, variables map[string]string) expansion {
	var out expansion
	var b strings.Builder
	for s != "" {
		plain, reference, rest := nextReference(s)
		b.WriteString(plain)
		b.WriteString(out.replace(reference, variables))
		s = rest
	}
	out.text = b.String()
	return out
}

// nextReference cuts s before and after its first ${…} or $${…}.
func nextReference(s string) (plain, reference, rest string) {
	begin := strings.Index(s, "${")
	if begin < 0 {
		return s, "", ""
	}
	length := strings.IndexByte(s[begin:], '}') + 1
	if length == 0 {
		return s, "", ""
	}
	end := begin + length
	if begin > 0 && s[begin-1] == '$' {
		begin--
	}
	return s[:begin], s[begin:end], s[end:]
}

// hasReference reports whether a text has a ${…}, of a variable or not.
func hasReference(s string) bool {
	_, reference, _ := nextReference(s)
	return reference != ""
}

// replace returns the value of a reference.
func (e *expansion) replace(reference string, variables map[string]string) string {
	if reference == "" || strings.HasPrefix(reference, "$$") {
		return strings.TrimPrefix(reference, "$")
	}
	name, fallback, hasFallback := strings.Cut(reference[2:len(reference)-1], ":-")
	if !variableName().MatchString(name) {
		e.unexpanded = true
		return reference
	}
	e.expanded = true
	value, defined := variables[name]
	switch {
	case strings.Contains(fallback, "${"):
		e.nested = true
	case hasFallback && value == "":
		return fallback
	case defined:
		e.values = append(e.values, value)
	case !slices.Contains(e.missing, name):
		e.missing = append(e.missing, name)
	}
	return value
}

// interpolated are the top-level keys below which strings may refer to variables.
var interpolated = []string{"mcp", "mcpServers", "servers", "tree", "gateway"}

// publicVariables are not secret, and their values are part of many paths and
// messages.
var publicVariables = []string{"HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"}

// interpolate expands every string below those keys, in place.
func (r *reading) interpolate(root *node, variables map[string]string) {
	for _, name := range publicVariables {
		r.public = append(r.public, variables[name])
	}
	walk("", "", root, func(within, key string, n *node) {
		r.texts = append(r.texts, writtenText{within, key, n.scalar})
	})
	for _, m := range root.members {
		switch {
		case slices.Contains(serverLists, m.key) && m.value.kind == object && !r.files.opts.Strict:
			for _, entry := range m.value.members {
				r.expandEntry(below(m.key, entry.key), entry.value, variables)
			}
		case m.key == "tree" && !r.files.opts.Strict:
			r.expandTree(m.key, m.value, variables)
		case slices.Contains(interpolated, m.key):
			r.expandBelow(m.key, m.value, variables)
		}
	}
}

// expandTree expands the nodes of the tree. A variable that is missing costs the
// source, or the text, that refers to it.
func (r *reading) expandTree(path string, n *node, variables map[string]string) {
	for i, item := range n.items {
		r.expandTree(at(path, i), item, variables)
	}
	for _, m := range n.members {
		if inner := below(path, m.key); m.key == "children" {
			r.expandTree(inner, m.value, variables)
		} else {
			r.expandEntry(inner, m.value, variables)
		}
	}
}

// expandEntry expands what is below a server's entry, or a member of a node of the
// tree. A variable that is missing there is no error of the file.
func (r *reading) expandEntry(path string, n *node, variables map[string]string) {
	outside := r.missing
	r.missing = MissingVariablesError{}
	r.expandBelow(path, n, variables)
	if missing := r.missing; len(missing.Names) > 0 {
		slices.Sort(missing.Names)
		it := "it"
		if len(missing.Names) > 1 {
			it = "them"
		}
		r.off[path] = &Off{missing.Names, fmt.Sprintf("set %s in %s, or write ${%s:-default}", it, r.variableSource, missing.Names[0])}
	}
	r.missing = outside
}

func (r *reading) expandBelow(path string, n *node, variables map[string]string) {
	switch n.kind {
	case text:
		e := expand(n.scalar, variables)
		n.expanded = e.expanded
		n.unresolved = len(e.missing) > 0 || e.nested
		if !n.unresolved {
			n.scalar = e.text
		}
		r.values = append(r.values, e.values...)
		for _, name := range e.missing {
			r.missingVariable(n.at, path, name)
		}
		if e.nested {
			r.fail(n.at, path, "a default cannot contain another ${…}", "write the default out")
		}
		if e.unexpanded {
			r.warn(n.at, path, "a ${…} in this text stays as it is", "references are ${NAME} or ${NAME:-default}; $${…} is a plain ${…}")
		}
	case list:
		for i, item := range n.items {
			r.expandBelow(at(path, i), item, variables)
		}
	case object:
		for _, m := range n.members {
			r.expandBelow(below(path, m.key), m.value, variables)
		}
	}
}
