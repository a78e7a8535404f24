package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/tailscale/hujson"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// yamlEdit changes lines of a file; the parser only finds positions. The printer of the
// parser would reformat the rest of the file: it drops a second blank line and the spaces
// before a comment, and moves a comment between the members of a flow map behind the last
// one, where it swallows the closing brace.
type yamlEdit struct {
	lines []string // each with its line end
	unit  string
	list  *ast.MappingValueNode // the key that holds the servers, and its value
}

var errUnusual = errors.New("the servers are written in a way that cannot be edited line by line; edit the file by hand")

// editYAML sets the server at path, the key of its list and its own key, or removes it if n
// is nil.
func editYAML(name string, data []byte, path []string, n *Node) ([]byte, error) {
	data, restore := UnixText(data)
	if _, err := hujson.Parse(data); err == nil {
		out, err := editJSON(name, data, path, n) // JSON in a YAML file
		return restore(out), err
	}
	e, err := newYAMLEdit(data, path[0])
	switch {
	case err != nil:
	case e.list == nil && n != nil:
		e.lines = append(e.lines, path[0]+":\n", e.entry(path[1], n, e.unit))
	case n != nil:
		err = e.set(path[1], n)
	case e.list != nil:
		err = e.remove(path[1])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return restore([]byte(strings.Join(e.lines, ""))), nil
}

func newYAMLEdit(data []byte, list string) (*yamlEdit, error) {
	e := &yamlEdit{lines: strings.SplitAfter(string(data), "\n"), unit: strings.ReplaceAll(indentUnit(data), "\t", "  ")}
	if last := len(e.lines) - 1; e.lines[last] == "" {
		e.lines = e.lines[:last]
	} else {
		e.lines[last] += "\n"
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, errUnusual
	}
	for _, doc := range file.Docs {
		for _, v := range mappingValues(doc.Body) {
			if v.Key.GetToken().Value == list {
				e.list = v
				return e, nil
			}
		}
	}
	return e, nil
}

func mappingValues(n ast.Node) []*ast.MappingValueNode {
	switch v := n.(type) {
	case *ast.MappingNode:
		return v.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{v}
	default:
		return nil
	}
}

// entry renders a server as lines.
func (e *yamlEdit) entry(key string, n *Node, indent string) string {
	return indent + plainYAML(key) + ":\n" + n.blockYAML(indent+e.unit, e.unit)
}

var emptyMap = lazyregexp.New(`^([^#]*:)\s*\{\s*\}`)

func (e *yamlEdit) set(key string, n *Node) error {
	entries := mappingValues(e.list.Value)
	head := line(e.list)
	switch m, isMap := e.list.Value.(*ast.MappingNode); {
	case e.list.Value.Type() == ast.NullType:
		e.insert(head+1, e.entry(key, n, e.unit))
	case isMap && m.IsFlowStyle && len(entries) == 0 && emptyMap().MatchString(e.lines[head]):
		e.lines[head] = emptyMap().ReplaceAllString(e.lines[head], "$1")
		e.insert(head+1, e.entry(key, n, e.unit))
	case len(entries) == 0 || isMap && m.IsFlowStyle:
		return errUnusual
	default:
		e.setBelow(entries, key, n)
	}
	return nil
}

// setBelow adds an entry after the others, or replaces the one with its key.
func (e *yamlEdit) setBelow(entries []*ast.MappingValueNode, key string, n *Node) {
	indent := strings.Repeat(" ", entries[0].Key.GetToken().Position.Column-1)
	i := find(entries, key)
	if i < 0 {
		last := entries[len(entries)-1]
		at := e.end(last, len(e.lines))
		text := e.entry(key, n, indent)
		if above := e.commentsAbove(line(last)); len(entries) > 1 && above > 0 && isBlank(e.lines[above-1]) {
			text = "\n" + text // like the entries before it
		}
		e.insert(at, text)
		return
	}
	from, to := line(entries[i]), e.end(entries[i], e.next(entries, i))
	text := e.entry(key, n, indent)
	if strings.TrimSpace(strings.SplitN(e.lines[from], "#", 2)[0]) == plainYAML(key)+":" {
		from, text = from+1, n.blockYAML(indent+e.unit, e.unit) // keep the comment on the key's line
	}
	e.lines = slices.Replace(e.lines, from, to, text)
}

func (e *yamlEdit) remove(key string) error {
	entries := mappingValues(e.list.Value)
	i := find(entries, key)
	if m, ok := e.list.Value.(*ast.MappingNode); i < 0 || ok && m.IsFlowStyle {
		return errUnusual
	}
	from, to := e.commentsAbove(line(entries[i])), e.end(entries[i], e.next(entries, i))
	first := from-1 == line(e.list)
	if from > 0 && to < len(e.lines) && (first || isBlank(e.lines[from-1])) && isBlank(e.lines[to]) && len(entries) > 1 {
		to++
	}
	e.lines = slices.Delete(e.lines, from, to)
	if len(entries) == 1 {
		head := line(e.list)
		e.lines[head] = strings.Replace(e.lines[head], ":", ": {}", 1)
	}
	return nil
}

func find(entries []*ast.MappingValueNode, key string) int {
	return slices.IndexFunc(entries, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == key })
}

// line returns the index of the line of a key.
func line(v *ast.MappingValueNode) int { return v.Key.GetToken().Position.Line - 1 }

func (e *yamlEdit) insert(at int, text string) { e.lines = slices.Insert(e.lines, at, text) }

// next returns the line of the entry after the one of index i.
func (e *yamlEdit) next(entries []*ast.MappingValueNode, i int) int {
	if i+1 < len(entries) {
		return line(entries[i+1])
	}
	return len(e.lines)
}

// end returns the line after the last one of an entry, at most limit. Blank lines and
// comments at its end belong to it only if they are indented deeper than its key.
func (e *yamlEdit) end(entry *ast.MappingValueNode, limit int) int {
	column := entry.Key.GetToken().Position.Column - 1
	to := line(entry) + 1
	for i := to; i < limit; i++ {
		text := e.lines[i]
		deeper := indentOf(text) > column
		switch {
		case isBlank(text) || isComment(text) && !deeper:
		case deeper:
			to = i + 1
		default:
			return to
		}
	}
	return to
}

// commentsAbove returns the first line of the comment directly above a line with the same
// indentation, or the line itself.
func (e *yamlEdit) commentsAbove(at int) int {
	indent := indentOf(e.lines[at])
	for at > 0 && isComment(e.lines[at-1]) && indentOf(e.lines[at-1]) == indent {
		at--
	}
	return at
}

func isBlank(s string) bool   { return strings.TrimSpace(s) == "" }
func isComment(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "#") }
func indentOf(s string) int   { return len(s) - len(strings.TrimLeft(s, " ")) }
