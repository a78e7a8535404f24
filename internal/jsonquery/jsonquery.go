// Package jsonquery runs JSONPath queries (RFC 9535) over JSON texts, and returns parts of the
// original text. It also supports two operators of filters that the RFC does not have
// (dialect.go).
package jsonquery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/theory/jsonpath"
	"github.com/theory/jsonpath/registry"
	"github.com/theory/jsonpath/spec"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// A Query is a JSONPath query (RFC 9535), or one in the dialect.
type Query struct {
	path     *jsonpath.Path
	singular bool // it names one value, which may not exist (RFC 9535, "Singular Query")
	loose    bool // it may select members of an object in any order
}

// The cost of a query grows with the number of values to the power of these, and a running query
// cannot be stopped. The limits are far above real queries.
const (
	maxQuery       = 1000 // bytes
	maxDescendants = 2    // ".."
	maxWildcards   = 8    // "*"
	maxUnions      = 16   // selectors in brackets, those of nested and following ones multiplied
)

// Parse parses a query. The error contains the position.
func Parse(text string) (*Query, error) {
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
	return &Query{path, path.Query().Singular() != nil, strings.ContainsAny(plain, "*?") || strings.Contains(plain, "..")}, nil
}

// affordable returns an error if a query costs too much. Filters are run for each value, so their
// paths from the root must select one value.
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
				return fmt.Errorf("a path from the root in a filter must select one value, such as $.tools[0].name, at position %d", original(i, moved)+1)
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

// functions are those of the RFC, and contains(), which implements the dialect's operator: a text
// contains another one, or an array contains an element.
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

// valueOf returns the value of an argument, nil if a query selects nothing.
func valueOf(arg spec.PathValue) any {
	if v := spec.ValueFrom(arg); v != nil {
		return v.Value()
	}
	return nil
}

// positioned returns an error of the library with the position in the original text, counted
// from 1.
func positioned(err error, text string, moved []moved) error {
	what, position, found := strings.Cut(strings.TrimPrefix(err.Error(), jsonpath.ErrPathParse.Error()+": "), " at position ")
	at := len(text) + 1
	if n, notNumber := strconv.Atoi(position); found && notNumber == nil {
		at = min(original(n-1, moved)+1, at)
	}
	return fmt.Errorf("%s at position %d", what, at)
}

// A Match is a part of a JSON text that a query selects.
type Match struct {
	Raw  json.RawMessage // as in the text
	Path spec.NormalizedPath
}

// elements returns the elements of an array; any other value is its own only element.
func (m Match) elements() []Match {
	if len(m.Raw) == 0 || m.Raw[0] != '[' {
		return []Match{m}
	}
	var all []Match
	for e := range wire.Elements(m.Raw) {
		all = append(all, Match{e, append(slices.Clip(m.Path), spec.Index(len(all)))})
	}
	return all
}

// Find returns the parts of a JSON text that the query selects. Those of an object
// come in its order, which the RFC leaves open.
func (q *Query) Find(text json.RawMessage) []Match {
	doc := newNode(text, new(int))
	located := q.path.SelectLocated(doc.value)
	type place struct {
		*node
		at spec.NormalizedPath
	}
	found := make([]place, len(located))
	names := false // whether there are members of one object
	for i, n := range located {
		found[i] = place{doc.at(n.Path), n.Path}
		if i > 0 {
			names = names || differInName(located[i-1].Path, n.Path)
		}
	}
	if q.loose && names {
		slices.SortStableFunc(found, func(a, b place) int { return cmp.Compare(a.order, b.order) })
	}
	matches := make([]Match, len(found))
	for i, p := range found {
		matches[i] = Match{p.raw, p.at}
	}
	return matches
}

// differInName reports whether two places diverge at the name of a member.
func differInName(a, b spec.NormalizedPath) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			_, isName := a[i].(spec.Name)
			return isName
		}
	}
	return false
}

// A node is a JSON value in both forms: for the library, and as in the text.
type node struct {
	raw     json.RawMessage
	order   int // of all values, in the order of the text
	value   any
	members map[string]*node
	items   []*node
}

// newNode reads a text known to be JSON. n counts values.
func newNode(raw json.RawMessage, n *int) *node {
	t := &node{raw: raw, order: *n}
	*n++
	switch {
	case wire.IsObject(raw):
		t.members = map[string]*node{}
		value := map[string]any{}
		for key, part := range wire.Members(raw) {
			name, _ := wire.Text(key)
			child := newNode(part, n)
			t.members[name], value[name] = child, child.value
		}
		t.value = value
	case raw[0] == '[':
		value := []any{}
		for part := range wire.Elements(raw) {
			child := newNode(part, n)
			t.items, value = append(t.items, child), append(value, child.value)
		}
		t.value = value
	case raw[0] == '"':
		t.value, _ = wire.Text(raw)
	default:
		if json.Unmarshal(raw, &t.value) != nil {
			t.value = json.Number(raw) // out of the range of float64
		}
	}
	return t
}

// at returns the value at a place from the library.
func (t *node) at(path spec.NormalizedPath) *node {
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

// All returns the selected part of a JSON text: the value if the query names one, otherwise an
// array of the matches.
func (q *Query) All(matches []Match) json.RawMessage {
	if q.singular && len(matches) == 1 {
		return matches[0].Raw
	}
	answer, _ := first(matches, math.MaxInt)
	return answer
}

// Within is All in at most limit bytes. shown are the matches that are completely in the answer,
// note describes the rest.
func (q *Query) Within(matches []Match, limit int) (answer json.RawMessage, shown []Match, note string, err error) {
	if q.singular && len(matches) == 1 {
		if len(matches[0].Raw) <= limit {
			return matches[0].Raw, matches, "", nil
		}
		matches = matches[0].elements()
	}
	answer, n := first(matches, limit)
	switch {
	case len(matches) > 0 && n == 0:
		return nil, nil, "", fmt.Errorf("the first match has %d characters, of which at most %d are shown: ask for a part of it, such as its name", len(utf16.Encode([]rune(string(matches[0].Raw)))), limit)
	case n < len(matches):
		note = fmt.Sprintf("Cut: the first %d of %d. Ask for less of each, such as its name, or for a part, such as [%d:%d].", n, len(matches), n, 2*n)
	}
	return answer, matches[:n], note, nil
}

// first returns an array of the first matches, as many as limit bytes hold.
func first(matches []Match, limit int) (array json.RawMessage, shown int) {
	array = json.RawMessage(`[`)
	for _, m := range matches {
		separator := min(shown, 1)
		if len(array)+separator+len(m.Raw)+len("]") > limit {
			break
		}
		array = append(append(array, ","[:separator]...), m.Raw...)
		shown++
	}
	return append(array, ']'), shown
}
