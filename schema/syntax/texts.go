package syntax

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SetTexts returns data, the file of this name whose tree is root, with some of its texts
// replaced. Every other byte stays as it is.
func SetTexts(name string, data []byte, root *Node, to map[*Node]string) ([]byte, error) {
	data, restore := UnixText(data)
	lines := strings.SplitAfter(string(data), "\n")
	nodes := slices.SortedFunc(maps.Keys(to), func(a, b *Node) int { return b.At.Compare(a.At) })
	// From the end on, so that positions stay valid. An aliased YAML node occurs once.
	for i, n := range nodes {
		old := n.Scalar
		n.Scalar = to[n]
		if i > 0 && nodes[i-1].At == n.At || n.At.Line > len(lines) {
			continue
		}
		line := []rune(lines[n.At.Line-1])
		at := min(n.At.Col-1, len(line)) // a lone carriage return shifts the parser's positions
		before, rest := string(line[:at]), string(line[at:])
		for _, written := range []string{Quote(old), `"` + old + `"`, "'" + old + "'", old} {
			if after, ok := strings.CutPrefix(rest, written); ok {
				lines[n.At.Line-1] = before + Quote(n.Scalar) + after
				break
			}
		}
	}
	return checked(name, restore([]byte(strings.Join(lines, ""))), root)
}

// SetLine returns data, a YAML file whose tree is root, with value at path as one line of a
// block mapping, or without that line if value is nil. A new line comes first in the mapping.
// Every other line stays. It is an error if that is impossible.
func SetLine(name string, data []byte, root *Node, path []string, value *Node) ([]byte, error) {
	data, restore := UnixText(data)
	above, key := path[:len(path)-1], path[len(path)-1]
	of := root
	for _, step := range above {
		of = of.Get(step)
	}
	out, after := withLine(data, of, key, value)
	if after == nil {
		return nil, fmt.Errorf("%s is not written in lines that can be replaced", name)
	}
	return checked(name, restore(out), withValue(root, above, after))
}

// withLine replaces, adds or removes the line of a key of an object. It returns the object as
// it should be read from the result, nil if there is no such line.
func withLine(data []byte, of *Node, key string, value *Node) ([]byte, *Node) {
	lines := strings.SplitAfter(string(data), "\n")
	if len(of.Members) == 0 || of.Members[len(of.Members)-1].At.Line > len(lines) || value != nil && (value.Kind == Object || value.Kind == List) {
		return nil, nil
	}
	after := &Node{Kind: Object, Members: slices.Clone(of.Members)}
	at, replaced := of.Members[0].At, 0
	i := slices.IndexFunc(of.Members, func(m Member) bool { return m.Key == key })
	if i >= 0 {
		at, replaced = of.Members[i].At, 1
		after.Members = slices.Delete(after.Members, i, i+1)
	}
	var line []string
	if value != nil {
		line = []string{strings.Repeat(" ", at.Col-1) + key + ": " + value.Inline() + "\n"}
		after.Members = slices.Insert(after.Members, max(i, 0), Member{Key: key, Value: value})
	}
	return []byte(strings.Join(slices.Replace(lines, at.Line-1, at.Line-1+replaced, line...), "")), after
}
