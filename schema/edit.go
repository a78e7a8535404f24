package schema

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dynmcp/dynmcp/schema/reference"
	"github.com/dynmcp/dynmcp/schema/syntax"
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

func parseEdited(name string, data []byte) (*syntax.Node, error) {
	src := &syntax.Source{Name: name, Data: data}
	root, err := src.Parse()
	if err != nil {
		return nil, err
	}
	if root.Kind != syntax.Object && root.Kind != syntax.Null {
		return nil, syntax.Errors{src.ErrorAt(syntax.Pos{Line: 1, Col: 1}, "", "the file holds "+root.Kind.String(), "a config is an object with mcp in it")}
	}
	return root, nil
}

func findEntry(root *syntax.Node, name string) *Entry {
	for _, e := range entriesOf(root) {
		if e.Name == name {
			return &e
		}
	}
	return nil
}

func entriesOf(root *syntax.Node) []Entry {
	var all []Entry
	for _, list := range ServerLists {
		for _, m := range root.MembersOf(list) {
			e := Entry{Name: m.Key, Key: m.Key, Line: m.At.Line, list: list}
			if list != "mcp" && !serverName().MatchString(m.Key) {
				e.Name = ServerName(m.Key)
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return a.Line - b.Line })
	return all
}

// ServerLists are the keys that hold servers by name, our own first.
var ServerLists = []string{"mcp", "mcpServers", "servers"}

// SetServer returns data, a config, with the server in it: in place of the entry
// of its name, or after the other servers. Comments, layout and all other entries
// stay as they are. The name of the file decides between JSON and YAML. Only
// fields that are set are written.
func SetServer(name string, data []byte, s Server) ([]byte, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	value := s.node()
	path := []string{ServerLists[0], s.Name}
	if i := slices.IndexFunc(ServerLists, root.Has); i >= 0 {
		path[0] = ServerLists[i]
	}
	if e := findEntry(root, s.Name); e != nil {
		path = []string{e.list, e.Key}
	}
	if path[0] != "mcp" {
		value = toHost(value)
	}
	return syntax.Edit(name, data, root, path, value)
}

// SetKey returns data, a config, with a new value of a key in the entry of a server, or
// without the key if the value is zero. JSON is otherwise unchanged. In YAML a value on one
// line is replaced as a line; otherwise the entry is rewritten.
func SetKey(name string, data []byte, server, key string, to any) ([]byte, error) {
	var value *syntax.Node
	if v := reflect.ValueOf(to); !v.IsZero() {
		value = valueNode(v)
	}
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	e := findEntry(root, server)
	if e == nil {
		return nil, fmt.Errorf("%s has no server %q", name, server)
	}
	path := []string{e.list, e.Key, key}
	if value == nil && !root.Get(e.list).Get(e.Key).Has(key) {
		return data, nil
	}
	if !syntax.IsYAML(name, data) {
		return syntax.Edit(name, data, root, path, value)
	}
	if out, err := syntax.SetLine(name, data, root, path, value); err == nil {
		return out, nil
	}
	entry := *root.Get(e.list).Get(e.Key)
	entry.Members = slices.DeleteFunc(slices.Clone(entry.Members), func(m syntax.Member) bool { return m.Key == key })
	if value != nil {
		entry.Members = append(entry.Members, syntax.Member{Key: key, Value: value})
	}
	return syntax.Edit(name, data, root, path[:2], &entry)
}

// ValueJSON returns the value of a key in JSON, on one line, as SetKey writes it.
func ValueJSON(value any) string { return valueNode(reflect.ValueOf(value)).Inline() }

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
	return syntax.Edit(name, data, root, []string{e.list, e.Key}, nil)
}

// Check returns the first error that a config file with this server in it would
// have, or nil. Strings that refer to variables are not checked.
func (s Server) Check() error {
	n := s.node()
	markReferences(n)
	r := &reading{report: report{src: &syntax.Source{}}, positions: map[string]syntax.Pos{}, entries: map[string]string{}, template: Single("", nil).Defaults}
	for t := range s.Keys {
		r.known = append(r.known, Section{Type: t, Server: true, Transport: s.Transport})
	}
	r.entry("", syntax.Member{Key: s.Name, Value: n}, false)
	if len(r.errs) == 0 {
		return nil
	}
	r.errs[0].Line = 0
	return r.errs[0]
}

func markReferences(n *syntax.Node) {
	n.Unresolved = n.Kind == syntax.Text && reference.In(n.Scalar)
	for _, item := range n.Items {
		markReferences(item)
	}
	for _, m := range n.Members {
		markReferences(m.Value)
	}
}

// Written returns the servers of a config file as written: references to variables stay, and
// no other file is read. The name is for errors, sections are the keys of the program's modules.
func Written(name string, data []byte, sections []Section) ([]Server, error) {
	r := &reading{known: sections, report: report{src: &syntax.Source{Name: name, Data: data}}, positions: map[string]syntax.Pos{}, entries: map[string]string{}, layered: true}
	root, err := r.src.Parse()
	if err != nil {
		return nil, err
	}
	r.root = root
	convertHost(r, name, root, documentFields)
	markReferences(root)
	doc := r.decodeDocument(root)
	return doc.serversInOrder(r), nil
}

// WithoutDefaults returns a server without the values that equal the defaults of the keys: in
// an entry they would override the defaults of another file.
func (s Server) WithoutDefaults() Server {
	clearEqual(reflect.ValueOf(&s).Elem(), reflect.ValueOf(Single("", nil).Defaults))
	return s
}

// clearEqual zeroes the fields of the struct v that are the same in usual.
func clearEqual(v, usual reflect.Value) {
	for i := range v.NumField() {
		if reflect.DeepEqual(v.Field(i).Interface(), usual.Field(i).Interface()) {
			v.Field(i).SetZero()
		}
	}
}
