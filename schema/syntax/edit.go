package syntax

import (
	"bytes"
	"fmt"
	"slices"
)

// Edit returns data, the file of this name whose tree is root, with value at the path of
// keys, or without that member if value is nil. It parses the result: if anything else has
// changed, the file is too unusual to be edited by a program.
func Edit(name string, data []byte, root *Node, path []string, value *Node) ([]byte, error) {
	edit := editJSON
	if IsTOML(name) {
		return nil, fmt.Errorf("%s is TOML, which dynmcp only reads; edit it by hand, or import it: dynmcp import --from %s", name, name)
	}
	if IsYAML(name, data) {
		edit = editYAML
	}
	out, err := edit(name, data, path, value)
	if err != nil {
		return nil, err
	}
	return checked(name, out, withValue(root, path, value))
}

// checked returns data, an edited file, or an error if its tree is not want.
func checked(name string, data []byte, want *Node) ([]byte, error) {
	got, err := (&Source{Name: name, Data: data}).Parse()
	if err != nil || !bytes.Equal(got.Compact(), want.Compact()) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed without touching the rest; edit it by hand", name)
	}
	return data, nil
}

// withValue returns the tree with value at path, or without it if value is nil.
// An object that loses its last member stays, empty.
func withValue(n *Node, path []string, value *Node) *Node {
	out := &Node{Kind: Object, Members: slices.Clone(n.Members)}
	i := slices.IndexFunc(out.Members, func(m Member) bool { return m.Key == path[0] })
	if len(path) > 1 {
		inner := &Node{Kind: Object}
		if i >= 0 {
			inner = out.Members[i].Value
		}
		value = withValue(inner, path[1:], value)
	}
	switch {
	case i < 0 && value != nil:
		out.Members = append(out.Members, Member{Key: path[0], Value: value})
	case i >= 0 && value == nil:
		out.Members = slices.Delete(out.Members, i, i+1)
	case i >= 0:
		out.Members[i].Value = value
	}
	return out
}
