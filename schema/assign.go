package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Place is a key of an entry, or a key below one, in a config file: env.TOKEN,
// tool_overrides["get.file"].timeout, args[1]. The types of the keys say what goes there.
type Place struct {
	name     string
	data     []byte
	root     *syntax.Node // of data, as written
	entry    Entry
	sections []Section

	path  string
	keys  []string // of the entry, as dynmcp calls them
	index int      // in a list, -1 without one
	typ   reflect.Type
	field field
}

// A keyType is a key with the type of its values.
type keyType struct {
	field
	typ reflect.Type
}

func keyTypes(of reflect.Type, fields []field) (all []keyType) {
	for _, f := range fields {
		all = append(all, keyType{f, of.Field(f.index).Type})
	}
	return all
}

// entryTypes returns the keys of an entry, those of modules included.
func entryTypes(sections []Section) []keyType {
	all := keyTypes(reflect.TypeFor[Server](), serverFields)
	for _, s := range sections {
		if s.Server {
			all = append(all, keyTypes(s.Type, fieldsOf(s.Type))...)
		}
	}
	return all
}

// PlaceOf returns the place of a path in the entry of a server in data, a config.
func PlaceOf(name string, data []byte, server, path string, sections []Section) (*Place, error) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil, err
	}
	e := findEntry(root, server)
	if e == nil {
		return nil, fmt.Errorf("%s has no server %q", name, server)
	}
	p := &Place{name: name, data: data, root: root, entry: *e, sections: sections, path: path, index: -1}
	return p, p.walk()
}

// walk follows the path.
func (p *Place) walk() error {
	below, rest := entryTypes(p.sections), p.path
	for {
		at := strings.TrimSuffix(p.path[:len(p.path)-len(rest)], ".")
		step, index, after, err := stepOf(rest)
		if err != nil {
			return p.fail(p.path, err.Error(), `write it like env.TOKEN, args[0] or tool_overrides["get.file"].timeout`)
		}
		switch t := direct(p.typ); {
		case below != nil:
			i := slices.IndexFunc(below, func(k keyType) bool { return k.key == step })
			if i < 0 {
				return p.fail(syntax.Below(at, step), "unknown key", p.hintFor(step, below))
			}
			p.keys, p.typ, p.field = append(p.keys, step), below[i].typ, below[i].field
		case t.Kind() == reflect.Map:
			if isText(t.Elem()) && rest[0] != '[' {
				step, after = rest, "" // a name may have dots
			}
			p.keys, p.typ = append(p.keys, step), t.Elem()
		case isList(t) && index >= 0 && after == "":
			p.index, p.typ = index, t.Elem()
		case isList(t):
			return p.fail(at, "this is a list", "set the whole list, or an item of it, as "+at+"[0]")
		default:
			return p.fail(at, "this has no keys of its own", "set "+at+" itself")
		}
		if after == "" {
			return nil
		}
		below, rest = keysBelow(p.typ), after
	}
}

func isText(t reflect.Type) bool { return t.Kind() == reflect.String }

func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]()
}

func direct(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// keysBelow returns the keys that an object of this type has, nil if it is none.
func keysBelow(t reflect.Type) []keyType {
	if t = direct(t); t.Kind() != reflect.Struct {
		return nil
	}
	return keyTypes(t, fieldsOf(t))
}

// stepOf returns the first step of a path, a key or an index, and what follows.
func stepOf(path string) (step string, index int, rest string, err error) {
	if inner, ok := strings.CutPrefix(path, "["); ok {
		if quoted, err := strconv.QuotedPrefix(inner); err == nil {
			step, _ = strconv.Unquote(quoted)
			inner, index = inner[len(quoted):], -1
		} else {
			step, _, _ = strings.Cut(inner, "]")
			if index, err = strconv.Atoi(step); err != nil || index < 0 {
				return "", 0, "", fmt.Errorf("[%s] is neither an index nor a key in quotes", step)
			}
			inner = inner[len(step):]
		}
		if rest, ok = strings.CutPrefix(inner, "]"); !ok {
			return "", 0, "", errors.New("a ] is missing")
		}
		return step, index, strings.TrimPrefix(rest, "."), nil
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if step = path[:end]; step == "" {
		return "", 0, "", errors.New("a key is missing")
	}
	if path[end:] == "." {
		return "", 0, "", errors.New("a key is missing after the last dot")
	}
	return step, -1, strings.TrimPrefix(path[end:], "."), nil
}

func (p *Place) hintFor(step string, below []keyType) string {
	var known []string
	for _, k := range below {
		known = append(known, k.key)
	}
	if len(p.keys) == 0 {
		if step == "policy" || nearest.Word(step, known) == "" && nearest.Word(step, []string{"policy"}) != "" {
			return "write policy.TOOL=ask"
		}
	}
	return hintForKey(step, known)
}

func (p *Place) fail(path, what, hint string) error {
	return &syntax.Error{Path: syntax.Below("", p.entry.Name) + "." + path, Err: errors.New(what), Hint: hint}
}

// Set returns the config with a value there, in the form of its type: a text as it is; a number, a time,
// true, false; a list as words, with quotes as for a shell, or as JSON; an object as JSON. words splits a
// text into words. It is an error if the entry would have errors that it has not now.
func (p *Place) Set(value string, words func(string) ([]string, error)) ([]byte, error) {
	n, err := p.parse(value, words)
	if err != nil {
		return nil, err
	}
	if p.index >= 0 {
		list := syntax.Node{Kind: syntax.List, Items: slices.Clone(p.items())}
		switch {
		case p.index > len(list.Items):
			return nil, p.fail(p.path, fmt.Sprintf("the list has only %d items", len(list.Items)), "count from 0")
		case p.index == len(list.Items):
			list.Items = append(list.Items, n)
		default:
			list.Items[p.index] = n
		}
		n = &list
	}
	return p.put(n)
}

// Unset returns the config without the key, or the item of a list.
func (p *Place) Unset() ([]byte, error) {
	if p.index < 0 {
		return p.put(nil)
	}
	items := slices.Clone(p.items())
	if p.index >= len(items) {
		return p.data, nil
	}
	return p.put(&syntax.Node{Kind: syntax.List, Items: slices.Delete(items, p.index, p.index+1)})
}

func (p *Place) items() []*syntax.Node {
	n, _ := p.root.Below(anys(p.inFile())...)
	if n.Kind != syntax.List {
		return nil
	}
	return n.Items
}

func anys(keys []string) (all []any) {
	for _, key := range keys {
		all = append(all, key)
	}
	return all
}

// parse returns the first form of a value that the type takes.
func (p *Place) parse(value string, words func(string) ([]string, error)) (*syntax.Node, error) {
	forms := []*syntax.Node{textNode(value)}
	if !isText(p.typ) {
		if n, err := (&syntax.Source{Name: "value.yaml", Data: []byte(value)}).Parse(); err == nil && n.Kind != syntax.Text {
			forms = slices.Insert(forms, 0, n)
		}
		if split, err := words(value); err == nil && !strings.HasPrefix(value, "[") && !strings.HasPrefix(value, "{") {
			list := &syntax.Node{Kind: syntax.List}
			for _, word := range split {
				list.Items = append(list.Items, textNode(word))
			}
			forms = append(forms, list)
		}
	}
	var first error
	for _, n := range forms {
		markReferences(n)
		r := &reading{report: report{src: &syntax.Source{}}}
		r.value(p.path, n, reflect.New(p.typ).Elem(), p.field)
		if len(r.errs) == 0 {
			return n, nil
		}
		if first == nil {
			first = p.fail(r.errs[0].Path, r.errs[0].Err.Error(), r.errs[0].Hint)
		}
	}
	return nil, first
}

// inFile returns the keys that lead from the root of the file to the place. Hosts have other names for some.
func (p *Place) inFile() []string {
	path := append([]string{p.entry.list, p.entry.Key}, p.keys...)
	if p.entry.list == "mcp" {
		return path
	}
	written, _ := p.root.Below(p.entry.list, p.entry.Key)
	_, converted, err := readEntry(p.name, p.data, p.entry, p.sections)
	m, _ := converted.Member(p.keys[0])
	switch {
	case err == nil && m.Written != "" && written.Has(m.Written):
		path[2] = m.Written
	case p.keys[0] == "transport" && !written.Has("transport"):
		path[2] = "type"
	}
	return path
}

// put returns the config with another value there, nil for none, and checks the entry.
func (p *Place) put(value *syntax.Node) ([]byte, error) {
	text, err := syntax.Set(p.name, p.data, p.root, p.inFile(), value)
	if err != nil || bytes.Equal(text, p.data) {
		return text, err
	}
	before, _, err := readEntry(p.name, p.data, p.entry, p.sections)
	if err != nil {
		return nil, err
	}
	after, converted, err := readEntry(p.name, text, p.entry, p.sections)
	if err != nil {
		return nil, err
	}
	for _, e := range after {
		if !slices.ContainsFunc(before, func(old *syntax.Error) bool { return old.Path == e.Path && old.Err.Error() == e.Err.Error() }) {
			e.Line = 0 // of a text that is not written
			return nil, e
		}
	}
	if value != nil && p.entry.list != "mcp" && p.keys[0] != "transport" {
		if n, _ := converted.Below(anys(p.keys)...); !bytes.Equal(n.Compact(), value.Compact()) {
			return nil, p.fail(p.path, "the entry says this in the way of a host, which dynmcp does not write", "edit "+p.name+" by hand")
		}
	}
	return text, nil
}

// readEntry returns the errors in the entry of a server, and the entry with dynmcp's keys.
func readEntry(name string, data []byte, e Entry, sections []Section) (errs syntax.Errors, entry *syntax.Node, err error) {
	r := &reading{report: report{src: &syntax.Source{Name: name, Data: data}}, known: sections, positions: map[string]syntax.Pos{}, entries: map[string]string{}, layered: true}
	root, err := r.src.Parse()
	if err != nil {
		return nil, &syntax.Node{}, err
	}
	r.root = root
	convertHost(r, name, root, withSections(documentFields, sections, false))
	markReferences(root)
	r.decodeDocument(root)
	at := map[string]string{syntax.Below(e.list, e.Key): e.Name}
	for _, found := range r.errs {
		if serverAt(at, found.Path) != "" {
			errs = append(errs, found)
		}
	}
	sortErrors(errs)
	entry, _ = root.Below(e.list, e.Key)
	return errs, entry, nil
}

// Paths returns paths that the entry of a server may have, for completion: each key, and below it what the
// type or the entry has.
func Paths(name string, data []byte, server string, sections []Section) (paths []string) {
	root, err := parseEdited(name, data)
	if err != nil {
		return nil
	}
	e := findEntry(root, server)
	if e == nil {
		return nil
	}
	written, _ := root.Below(e.list, e.Key)
	transport := transportOf(written)
	for _, k := range entryTypes(sections) {
		if transport != "" && !slices.Contains(groupsWith(transport), k.group) {
			continue
		}
		paths = append(paths, k.key)
		for _, below := range keysBelow(k.typ) {
			paths = append(paths, k.key+"."+below.key)
		}
		if k.typ.Kind() != reflect.Map {
			continue
		}
		for _, m := range written.MembersOf(k.key) {
			at := syntax.Below(k.key, m.Key)
			paths = append(paths, at)
			for _, below := range keysBelow(k.typ.Elem()) {
				paths = append(paths, at+"."+below.key)
			}
		}
	}
	return paths
}
