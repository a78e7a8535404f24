package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A pathQuery is a JSONPath query (RFC 9535), or one in the dialect that dialect reads.
type pathQuery struct {
	path  *jsonpath.Path
	loose bool // it may select members of an object in any order
}

// What a query costs grows with the number of values to the power of these, and nothing
// ends one that runs. They are far from what anybody writes.
const (
	maxQuery       = 1000 // bytes
	maxDescendants = 2    // ".."
	maxWildcards   = 8    // "*"
	maxUnions      = 16   // selectors in brackets, those of nested and following ones multiplied
)

// parsePath reads a query. The error says where it is wrong.
func parsePath(text string) (*pathQuery, error) {
	if len(text) > maxQuery {
		return nil, fmt.Errorf("it is longer than %d characters", maxQuery)
	}
	plain, moved, err := dialect(text)
	if err == nil {
		err = affordable(plain, moved)
	}
	if err != nil {
		return nil, err
	}
	path, err := jsonpath.NewParser(jsonpath.WithRegistry(functions())).Parse(plain)
	if err != nil {
		return nil, positioned(err, text, moved)
	}
	return &pathQuery{path, strings.ContainsAny(plain, "*?") || strings.Contains(plain, "..")}, nil
}

// affordable says what makes a query cost too much. Filters are run for each value, so
// what they look for from the root must be one value.
func affordable(query string, moved []moved) error {
	descendants, wildcards, unions := 0, 0, 1
	var open []byte     // brackets
	var selectors []int // in each of them
	for i := 0; i < len(query); i++ {
		switch c := query[i]; c {
		case '\'', '"':
			i = skipQuoted(query, i) - 1
		case '.':
			if strings.HasPrefix(query[i:], "..") {
				descendants++
				i++
			}
		case '*':
			wildcards++
		case '[', '(':
			open, selectors = append(open, c), append(selectors, 1)
		case ',':
			if last := len(open) - 1; last >= 0 && open[last] == '[' {
				selectors[last]++
			}
		case ']', ')':
			if last := len(open) - 1; last >= 0 {
				unions *= min(selectors[last], maxUnions+1)
				open, selectors = open[:last], selectors[:last]
			}
		case '$':
			end := skipPath(query, i)
			path, next := query[i:end], query[skipSpace(query, end):]
			if i > 0 && (strings.ContainsAny(path, "*,:") || strings.Contains(path, "..") || strings.HasPrefix(next, "[") || strings.HasPrefix(next, ".")) {
				return fmt.Errorf("what a filter looks for from the root must be one value, such as $.tools[0].name, at position %d", original(i, moved)+1)
			}
		}
		switch {
		case descendants > maxDescendants:
			return fmt.Errorf(`it has ".." more than %d times`, maxDescendants)
		case wildcards > maxWildcards:
			return fmt.Errorf(`it has "*" more than %d times`, maxWildcards)
		case unions > maxUnions:
			return fmt.Errorf("its lists of selectors, such as ['a','b'], make more than %d combinations", maxUnions)
		}
	}
	return nil
}

// functions are those of the RFC, and contains(), to which the dialect's operator
// becomes: a text has another in it, or an array has it as an element.
var functions = sync.OnceValue(func() *registry.Registry {
	r := registry.New()
	err := r.Register("contains", spec.FuncLogical, func(args []spec.FuncExprArg) error {
		if len(args) != 2 || !args[0].ConvertsTo(spec.FuncValue) || !args[1].ConvertsTo(spec.FuncValue) {
			return errors.New("takes a value, such as @.name, and a text")
		}
		return nil
	}, func(args []spec.PathValue) spec.PathValue {
		whole, part := valueOf(args[0]), valueOf(args[1])
		text, _ := part.(string)
		switch whole := whole.(type) {
		case string:
			return spec.Logical(strings.Contains(whole, text))
		case []any:
			return spec.Logical(slices.Contains(whole, any(text)))
		}
		return spec.LogicalFalse
	})
	if err != nil {
		panic(err)
	}
	return r
})

// valueOf returns what an argument is, nil where a query selects nothing.
func valueOf(arg spec.PathValue) any {
	if v := spec.ValueFrom(arg); v != nil {
		return v.Value()
	}
	return nil
}

// positioned returns an error of the library with the position in the text that was
// given, counted from 1.
func positioned(err error, text string, moved []moved) error {
	what, position, found := strings.Cut(strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": "), " at position ")
	at := len(text) + 1
	if n, notNumber := strconv.Atoi(position); found && notNumber == nil {
		at = min(original(n-1, moved)+1, at)
	}
	return fmt.Errorf("%s at position %d", what, at)
}

// definite reports whether the query names one value, which may not be there (RFC
// 9535, "Singular Query").
func (q *pathQuery) definite() bool { return q.path.Query().Singular() != nil }

// A match is a part of a JSON text that a query selects.
type match struct {
	raw json.RawMessage // as it stands there
	at  spec.NormalizedPath
}

// elements returns the elements of an array; anything else is its own only one.
func (m match) elements() []match {
	if len(m.raw) == 0 || m.raw[0] != '[' {
		return []match{m}
	}
	var all []match
	for e := range wire.Elements(m.raw) {
		all = append(all, match{e, append(slices.Clip(m.at), spec.Index(len(all)))})
	}
	return all
}

// find returns the parts of a JSON text that the query selects. Those of an object
// come in its order, which the RFC leaves open.
func (q *pathQuery) find(text json.RawMessage) []match {
	doc := readTree(text)
	located := q.path.SelectLocated(doc.value)
	type place struct {
		*tree
		at spec.NormalizedPath
	}
	found := make([]place, len(located))
	names := false // members of one object are among them
	for i, n := range located {
		found[i] = place{doc.at(n.Path), n.Path}
		if i > 0 {
			names = names || differInName(located[i-1].Path, n.Path)
		}
	}
	if q.loose && names {
		slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(a.order, b.order) })
	}
	matches := make([]match, len(found))
	for i, p := range found {
		matches[i] = match{p.raw, p.at}
	}
	return matches
}

// differInName reports whether two places part at the name of a member.
func differInName(a, b spec.NormalizedPath) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			_, isName := a[i].(spec.Name)
			return isName
		}
	}
	return false
}

// A tree is a JSON value in both forms: for the library, and as it stands in the text.
type tree struct {
	raw     json.RawMessage
	order   int // of all values, as they stand in the text
	value   any
	members map[string]*tree
	items   []*tree
}

func readTree(text json.RawMessage) *tree {
	n := 0
	return newTree(text, &n)
}

// newTree reads a text known to be JSON. n counts values.
func newTree(raw json.RawMessage, n *int) *tree {
	t := &tree{raw: raw, order: *n}
	*n++
	switch {
	case wire.IsObject(raw):
		t.members = map[string]*tree{}
		value := map[string]any{}
		for key, part := range wire.Members(raw) {
			name, _ := wire.Text(key)
			child := newTree(part, n)
			t.members[name], value[name] = child, child.value
		}
		t.value = value
	case raw[0] == '[':
		value := []any{}
		for part := range wire.Elements(raw) {
			child := newTree(part, n)
			t.items, value = append(t.items, child), append(value, child.value)
		}
		t.value = value
	case raw[0] == '"':
		t.value, _ = wire.Text(raw)
	default:
		t.value = plainValue(raw)
	}
	return t
}

// plainValue reads a number, true, false or null.
func plainValue(raw json.RawMessage) any {
	switch string(raw) {
	case "true":
		return true
	case "false":
		return false
	case "null":
		return nil
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil {
		return f
	}
	return json.Number(raw)
}

// at returns the value at a place that the library found.
func (t *tree) at(path spec.NormalizedPath) *tree {
	for _, step := range path {
		switch step := step.(type) {
		case spec.Name:
			t = t.members[string(step)]
		case spec.Index:
			t = t.items[step]
		}
	}
	return t
}
