package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expansion is a string with its references replaced.
type expansion struct {
	text       string
	expanded   bool     // there was a reference
	values     []string // of variables that were inserted; defaults are not among them
	missing    []string // undefined variables without a default
	unexpanded bool     // a ${…} that is not a reference is left as it is
	nested     string   // what contains a ${…} of its own, a default or a reference

	secrets []string // values of secrets that were inserted
	failed  []secret // those that could not be found
	unasked bool     // a reference to a secret is left as it is
}

// expand replaces ${NAME} and ${NAME:-default} in s. Values are not expanded
// again. The default also replaces an empty variable. $${…} is an escaped ${…}.
// Everything else, a lone $ and an unclosed ${ included, stays as it is.
func expand(s string, variables map[string]string, found map[string]secret) expansion {
	var out expansion
	var b strings.Builder
	for s != "" {
		plain, reference, rest := nextReference(s)
		b.WriteString(plain)
		b.WriteString(out.replace(reference, variables, found))
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
func (e *expansion) replace(reference string, variables map[string]string, found map[string]secret) string {
	if reference == "" || strings.HasPrefix(reference, "$$") {
		return strings.TrimPrefix(reference, "$")
	}
	if isSecretReference(reference) {
		return e.replaceSecret(reference, found)
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
		e.nested = "a default"
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
func (r *reading) interpolate(root *syntax.Node, variables map[string]string) {
	for _, name := range publicVariables {
		r.public = append(r.public, variables[name])
	}
	mask.Walk("", "", root, func(within, key string, n *syntax.Node) {
		r.texts = append(r.texts, writtenText{within, key, n.Scalar})
	})
	e := expander{report: &r.report, variables: variables, found: r.findSecrets(root), off: r.off}
	for _, m := range root.Members {
		switch {
		case slices.Contains(serverLists, m.Key) && m.Value.Kind == syntax.Object:
			for _, entry := range m.Value.Members {
				if path := syntax.Below(m.Key, entry.Key); r.files.opts.Strict && !r.needless[entry.At] {
					e.below(path, entry.Value)
				} else {
					e.entry(path, entry.Value)
				}
			}
		case m.Key == "tree" && !r.files.opts.Strict:
			e.tree(m.Key, m.Value)
		case slices.Contains(interpolated, m.Key):
			e.below(m.Key, m.Value)
		}
	}
	r.values = e.values
}

// An expander replaces references to variables in a document.
type expander struct {
	*report
	variables map[string]string
	found     map[string]secret // by reference
	off       map[string]*Off   // by path, what is off because a variable is missing
	values    []string          // of variables that were inserted
	failed    *[]secret         // of the entry that is expanded; nil outside of one
}

// tree expands the nodes of the tree. A variable that is missing costs the
// source, or the text, that refers to it.
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

// entry expands what is below a server's entry, or a member of a node of the
// tree. A variable that is missing there is no error of the file.
func (e *expander) entry(path string, n *syntax.Node) {
	outside := e.missing
	var failed []secret
	e.missing, e.failed = MissingVariablesError{}, &failed
	e.below(path, n)
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
		if !slices.Contains(off.Failed, s.problem) {
			off.Failed = append(off.Failed, s.problem)
		}
		if !slices.Contains(hints, s.hint) {
			hints = append(hints, s.hint)
		}
	}
	if off.Hint = strings.Join(hints, "; "); len(hints) > 0 {
		e.off[path] = off
	}
	e.missing, e.failed = outside, nil
}

func (e *expander) below(path string, n *syntax.Node) {
	switch n.Kind {
	case syntax.Text:
		x := expand(n.Scalar, e.variables, e.found)
		n.Expanded = x.expanded
		n.Unresolved = len(x.missing) > 0 || x.nested != "" || len(x.failed) > 0 || x.unasked
		if !n.Unresolved {
			n.Scalar = x.text
		}
		e.values = append(e.values, x.values...)
		for _, name := range x.missing {
			e.missingVariable(n.At, path, name)
		}
		e.secretsOf(n, path, x)
		if x.nested != "" {
			e.fail(n.At, path, x.nested+" cannot contain another ${…}", "write "+strings.Replace(x.nested, "a ", "the ", 1)+" out")
		}
		if x.unexpanded {
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
