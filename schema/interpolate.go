package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// interpolated are the top-level keys below which strings may refer to variables, besides those of
// modules that say so.
var interpolated = []string{"mcp", "mcpServers", "servers", "tree", "gateway"}

// refersToVariables reports whether strings below a key of sections may refer to variables.
func refersToVariables(sections []Section, key string) bool {
	return slices.ContainsFunc(sections, func(s Section) bool {
		return slices.ContainsFunc(fieldsOf(s.Type), func(f field) bool { return f.key == key && f.variables })
	})
}

// publicVariables have values that are not secret, and part of many paths and messages.
var publicVariables = []string{"HOME", "LANG", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "USER"}

// interpolate expands every string below the interpolated keys, in place.
func (r *reading) interpolate(root *syntax.Node, variables map[string]string) {
	for _, name := range publicVariables {
		r.public = append(r.public, variables[name])
	}
	mask.Walk("", "", root, func(within, key string, n *syntax.Node) {
		r.texts = append(r.texts, writtenText{within, key, n.Scalar})
	})
	e := expander{report: &r.report, variables: variables, found: r.findSecrets(root), off: r.off}
	asked := r.files.opts.Secret != nil
	for _, m := range root.Members {
		switch {
		case slices.Contains(ServerLists, m.Key) && m.Value.Kind == syntax.Object:
			for _, entry := range m.Value.Members {
				e.used = asked && !isDisabled(entry.Value)
				if path := syntax.Below(syntax.Below("", m.Name()), entry.Key); r.files.opts.Strict && !r.needless[path] {
					e.server(path, entry.Value)
				} else {
					e.entry(path, entry.Value)
				}
				e.used = false
			}
		case m.Key == "tree" && !r.files.opts.Strict:
			e.used = asked
			e.tree(m.Key, m.Value)
			e.used = false
		case slices.Contains(interpolated, m.Key) || refersToVariables(r.known, m.Key):
			e.below(m.Key, m.Value)
		}
	}
	r.values = e.values
}

// An expander replaces references to variables in a document.
type expander struct {
	*report
	variables map[string]string
	found     map[string]reference.Secret // by reference
	off       map[string]*Off             // path → why it is off
	values    []string                    // of variables that were inserted
	used      bool                        // a reference to a secret must not stay as it is
	failed    *[]reference.Secret         // of the entry that is expanded; nil outside of one
}

// tree expands the nodes of the tree. A missing variable disables the source, or drops the
// text, that refers to it.
func (e *expander) tree(path string, n *syntax.Node) {
	for i, item := range n.Items {
		e.tree(syntax.Item(path, i), item)
	}
	for _, m := range n.Members {
		if inner := syntax.Below(path, m.Key); m.Key == "children" {
			e.tree(inner, m.Value)
		} else {
			e.entry(inner, m.Value)
		}
	}
}

// entry expands a server's entry, or a member of a node of the tree. A missing variable
// switches it off, and is no error of the file.
func (e *expander) entry(path string, n *syntax.Node) {
	outside := e.missing
	var failed []reference.Secret
	e.missing, e.failed = MissingVariablesError{}, &failed
	e.server(path, n)
	off := &Off{Missing: e.missing.Names}
	var hints []string
	if len(off.Missing) > 0 {
		slices.Sort(off.Missing)
		it := "it"
		if len(off.Missing) > 1 {
			it = "them"
		}
		hints = append(hints, fmt.Sprintf("set %s in %s, or write ${%s:-default}", it, e.variableSource, off.Missing[0]))
	}
	for _, s := range failed {
		if !slices.Contains(off.Failed, s.Problem) {
			off.Failed = append(off.Failed, s.Problem)
		}
		if !slices.Contains(hints, s.Hint) {
			hints = append(hints, s.Hint)
		}
	}
	if off.Hint = strings.Join(hints, "; "); len(hints) > 0 {
		e.off[path] = off
	}
	e.missing, e.failed = outside, nil
}

// server expands an entry: its own env comes first, so that its other texts can refer to what that sets.
func (e *expander) server(path string, n *syntax.Node) {
	outside := e.variables
	defer func() { e.variables = outside }()
	if env, ok := n.Member("env"); ok && env.Value.Kind == syntax.Object {
		e.below(syntax.Below(path, env.Name()), env.Value)
		e.variables = maps.Clone(outside)
		for _, m := range env.Value.Members {
			if m.Value.Kind == syntax.Text && !m.Value.Unresolved {
				e.variables[m.Key] = m.Value.Scalar
			}
		}
	}
	for _, m := range n.Members {
		if m.Key != "env" || m.Value.Kind != syntax.Object {
			e.below(syntax.Below(path, m.Name()), m.Value)
		}
	}
	if n.Kind != syntax.Object {
		e.below(path, n)
	}
}

func (e *expander) below(path string, n *syntax.Node) {
	switch n.Kind {
	case syntax.Text:
		x := reference.Expand(n.Scalar, e.variables, e.found)
		n.Expanded = x.Expanded
		n.Unresolved = n.Unresolved || len(x.Missing) > 0 || x.Nested != "" || len(x.Failed) > 0 || x.Unasked
		if !n.Unresolved {
			n.Scalar = x.Text
		}
		e.values = append(e.values, x.Values...)
		for _, name := range x.Missing {
			e.missingVariable(n.At, path, name)
		}
		e.secretsOf(n, path, x)
		if x.Nested != "" {
			e.fail(n.At, path, x.Nested+" cannot contain another ${…}", "write "+strings.Replace(x.Nested, "a ", "the ", 1)+" out")
		}
		if x.User && !strings.Contains(path, ".env.") && !strings.Contains(path, ".headers.") {
			e.warn(n.At, path, "a ${user:…} in this text stays as it is", "values of users are for headers and env")
		}
		if x.Unexpanded {
			e.warn(n.At, path, "a ${…} in this text stays as it is", "references are ${NAME}, ${NAME:-default}, ${keyring:NAME}, ${cmd:COMMAND} and ${file:PATH}; $${…} is a plain ${…}")
		}
	case syntax.List:
		for i, item := range n.Items {
			e.below(syntax.Item(path, i), item)
		}
	case syntax.Object:
		for _, m := range n.Members {
			e.below(syntax.Below(path, m.Key), m.Value)
		}
	}
}
