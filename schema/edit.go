package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Entry is the place of a server in a config file.
type Entry struct {
	// Name is the name of the server, Key the key it has in the file: host
	// configs have keys that are not valid names.
	Name, Key string
	// Line counts from 1.
	Line int

	list string // mcp, mcpServers or servers
}

// Entries lists the servers of a config file in its order without validating
// them. The name of the file decides between JSON and YAML.
func Entries(name string, data []byte) ([]Entry, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	return entriesOf(root), nil
}

func parseEdited(name string, data []byte) (*node, error) {
	root, failure := (&source{name: name, data: data}).parse()
	if failure != nil {
		return nil, Errors{failure}
	}
	if root.kind != object && root.kind != null {
		return nil, Errors{{File: name, Line: 1, Column: 1, Err: errors.New("the file holds " + root.kind.String()), Hint: "a config is an object with mcp in it"}}
	}
	return root, nil
}

func findEntry(root *node, name string) *Entry {
	for _, e := range entriesOf(root) {
		if e.Name == name {
			return &e
		}
	}
	return nil
}

func entriesOf(root *node) []Entry {
	var all []Entry
	for _, list := range serverLists {
		for _, m := range root.membersOf(list) {
			e := Entry{Name: m.key, Key: m.key, Line: m.at.line, list: list}
			if list != "mcp" && !serverName().MatchString(m.key) {
				e.Name = slug(m.key)
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Line - b.Line })
	return all
}

// serverLists are the keys that hold servers by name, our own first.
var serverLists = []string{"mcp", "mcpServers", "servers"}

// SetServer returns data, a config, with the server in it: in place of the entry
// of its name, or after the other servers. Comments, layout and all other entries
// stay as they are. The name of the file decides between JSON and YAML. Only
// fields that are set are written.
func SetServer(name string, data []byte, s Server) ([]byte, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	value := entryNode(s)
	path := []string{serverLists[0], s.Name}
	if i := slices.IndexFunc(serverLists, root.has); i >= 0 {
		path[0] = serverLists[i]
	}
	if e := findEntry(root, s.Name); e != nil {
		path = []string{e.list, e.Key}
	}
	if path[0] != "mcp" {
		value = value.toHost()
	}
	return applyEdit(name, data, root, path, value)
}

// RemoveServer returns data, a config, without the server of that name. It
// returns data itself if there is no such server.
func RemoveServer(name string, data []byte, server string) ([]byte, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	e := findEntry(root, server)
	if e == nil {
		return data, nil
	}
	return applyEdit(name, data, root, []string{e.list, e.Key}, nil)
}

// applyEdit sets value at path, or removes it if value is nil, and parses the
// result: if anything else has changed, the file is too unusual to be edited by
// a program.
func applyEdit(name string, data []byte, root *node, path []string, value *node) ([]byte, error) {
	src := &source{name: name, data: bytes.Clone(data)}
	_, _ = src.check() // strips the byte order mark
	edit := editJSON
	if src.isYAML() {
		edit = editYAML
	}
	out, err := edit(name, data, path, value)
	if err != nil {
		return nil, err
	}
	after, failure := (&source{name: name, data: out}).parse()
	if failure != nil || !bytes.Equal(after.compact(), withValue(root, path, value).compact()) {
		return nil, fmt.Errorf("%s is written in a way that cannot be changed without touching the rest; edit it by hand", name)
	}
	return out, nil
}

// withValue returns the tree with value at path, or without it if value is nil.
// An object that loses its last member stays, empty.
func withValue(n *node, path []string, value *node) *node {
	out := &node{kind: object, members: slices.Clone(n.members)}
	i := slices.IndexFunc(out.members, func(m member) bool { return m.key == path[0] })
	if len(path) > 1 {
		inner := &node{kind: object}
		if i >= 0 {
			inner = out.members[i].value
		}
		value = withValue(inner, path[1:], value)
	}
	switch {
	case i < 0 && value != nil:
		out.members = append(out.members, member{key: path[0], value: value})
	case i >= 0 && value == nil:
		out.members = slices.Delete(out.members, i, i+1)
	case i >= 0:
		out.members[i].value = value
	}
	return out
}

// Check returns the first error that a config file with this server in it would
// have, or nil. Strings that refer to variables are not checked.
func (s Server) Check() error {
	n := entryNode(s)
	markReferences(n)
	r := &reading{report: report{src: &source{}}, positions: map[string]pos{}, template: Single("", nil).Defaults}
	r.entry("", member{key: s.Name, value: n}, false)
	if len(r.errs) == 0 {
		return nil
	}
	r.errs[0].Line = 0
	return r.errs[0]
}

func markReferences(n *node) {
	n.unresolved = n.kind == text && hasReference(n.scalar)
	for _, item := range n.items {
		markReferences(item)
	}
	for _, m := range n.members {
		markReferences(m.value)
	}
}

// Written returns the servers of a config file as they are written: references to
// variables stay, and nothing else is read. The name is for errors.
func Written(name string, data []byte) ([]Server, error) {
	r := &reading{report: report{src: &source{name: name, data: data}}, positions: map[string]pos{}, layered: true}
	root, failure := r.src.parse()
	if failure != nil {
		return nil, Errors{failure}
	}
	r.root = root
	hostReader{&r.report}.document(root)
	markReferences(root)
	doc := r.decodeDocument(root)
	return doc.serversInOrder(r), nil
}
