package syntax

import (
	"fmt"
	"slices"
	"strings"
)

// Set returns data, the file of this name whose tree is root, with value at the path of keys, or
// without that member if value is nil. Objects that are missing on the way are added, and a value
// there that is no object is replaced by one. Comments, order and layout of all else stay; in YAML,
// what is written in braces on one line is written anew as far as the braces go. The first two keys
// of path lead to an object.
func Set(name string, data []byte, root *Node, path []string, value *Node) ([]byte, error) {
	for i := 2; i < len(path); i++ {
		of := root.at(path[:i])
		if of != nil && of.Kind == Object {
			continue
		}
		if value == nil {
			return data, nil
		}
		for _, key := range slices.Backward(path[i:]) {
			value = &Node{Kind: Object, Members: []Member{{Key: key, Value: value}}}
		}
		path = path[:i]
		break
	}
	if value == nil && root.at(path) == nil {
		return data, nil
	}
	if isJSON(name, data) {
		return Edit(name, data, root, path, value)
	}
	return setYAML(name, data, root, path, value)
}

// setYAML changes as few lines as it can: those of the member, or of the nearest object around it that has
// lines of its own.
func setYAML(name string, data []byte, root *Node, path []string, value *Node) ([]byte, error) {
	text, restore := UnixText(data)
	e, err := newYAMLEdit(text, path[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	lines := e.lines
	for ; len(path) > 0; path = path[:len(path)-1] {
		e.lines = slices.Clone(lines)
		of := root.at(path[:len(path)-1])
		if e.setMember(of, path[len(path)-1], value) {
			if out, err := checked(name, restore([]byte(strings.Join(e.lines, ""))), withValue(root, path, value)); err == nil {
				return out, nil
			}
		}
		value = withValue(of, path[len(path)-1:], value)
	}
	return nil, fmt.Errorf("%s is written in a way that cannot be changed without touching the rest; edit it by hand", name)
}

// setMember sets, adds or removes a member of an object that has its members on lines of their own. It
// reports whether it could.
func (e *yamlEdit) setMember(of *Node, key string, value *Node) bool {
	if len(of.Members) == 0 || !e.ownLine(of.Members[0]) {
		return false
	}
	i := slices.IndexFunc(of.Members, func(m Member) bool { return m.Key == key })
	if i < 0 {
		last := of.Members[len(of.Members)-1]
		if !e.ownLine(last) {
			return false
		}
		e.insert(e.endOf(last), e.member(key, value, nil, last.At.Col-1))
		return true
	}
	m := of.Members[i]
	if !e.ownLine(m) || len(of.Members) == 1 && value == nil {
		return false // without its last member it is {}, which the object around it writes
	}
	from, to := m.At.Line-1, e.endOf(m)
	if value == nil {
		e.lines = slices.Delete(e.lines, e.commentsAbove(from), to)
		return true
	}
	first, rest, _ := strings.Cut(e.member(key, value, m.Value, m.At.Col-1), "\n")
	if at := commentIn(e.lines[from]); at >= 0 {
		first += strings.TrimSuffix(e.lines[from][at:], "\n")
	}
	e.lines = slices.Replace(e.lines, from, to, first+"\n"+rest)
	return true
}

// member renders a member in the style of the value that it replaces.
func (e *yamlEdit) member(key string, value, old *Node, indent int) string {
	blanks := strings.Repeat(" ", indent)
	if old != nil && value.Kind == Object && old.Kind == Object && !(len(old.Members) > 0 && e.ownLine(old.Members[0])) {
		return blanks + plainYAML(key) + ": " + value.Inline() + "\n"
	}
	return (&Node{Kind: Object, Members: []Member{{Key: key, Value: value}}}).blockYAML(blanks, e.unit)
}

// ownLine reports whether a member begins a line.
func (e *yamlEdit) ownLine(m Member) bool {
	return m.At.Line >= 1 && m.At.Line <= len(e.lines) && indentOf(e.lines[m.At.Line-1]) == m.At.Col-1
}

// endOf returns the line after the last one of a member. The items of a list may be as far to the left
// as its key.
func (e *yamlEdit) endOf(m Member) int {
	to := m.At.Line
	for i := to; i < len(e.lines); i++ {
		text := e.lines[i]
		indent := indentOf(text)
		inside := indent > m.At.Col-1 || indent == m.At.Col-1 && m.Value.Kind == List && strings.HasPrefix(text[indent:], "-")
		switch {
		case isBlank(text) || isComment(text) && !inside:
		case inside:
			to = i + 1
		default:
			return to
		}
	}
	return to
}

// commentIn returns where the comment at the end of a line begins, with the blanks before it, -1 without one.
func commentIn(line string) int {
	var quote rune
	before := ' '
	for i, c := range line {
		switch {
		case quote != 0:
			if c == quote && before != '\\' {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.ContainsRune(" [{,:", before):
			quote = c
		case c == '#' && before == ' ':
			return len(strings.TrimRight(line[:i], " "))
		}
		before = c
	}
	return -1
}

// at returns the value to which keys lead, or nil.
func (n *Node) at(path []string) *Node {
	for _, key := range path {
		n = n.Get(key)
	}
	return n
}
