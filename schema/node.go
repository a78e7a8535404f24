package schema

import (
	"cmp"
	"strconv"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// kind is the kind of a JSON value; YAML is read into the same kinds.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// String returns the kind as errors name it.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "an object"}[k]
}

// pos is a position in a file, counted from 1, columns in characters.
type pos struct{ line, col int }

// compare orders positions as they are in the file.
func (p pos) compare(q pos) int {
	return cmp.Or(p.line-q.line, p.col-q.col)
}

// node is a value of a document.
type node struct {
	kind kind
	at   pos

	scalar  string   // a decoded string, a number as written, true or false
	items   []*node  // of a list
	members []member // of an object, in file order

	// expanded is set on strings that had a reference to a variable: errors must
	// not show them.
	expanded bool
	// unresolved is set on strings that refer to an undefined variable. That is
	// reported once, and the string is not checked further.
	unresolved bool
}

// member is one key of an object with its value.
type member struct {
	key string
	// written is the key in the file if a host's key was renamed to ours. Paths in
	// errors use it.
	written string
	at      pos
	value   *node
}

func (m member) name() string {
	if m.written != "" {
		return m.written
	}
	return m.key
}

// member returns the first member with the key.
func (n *node) member(key string) (member, bool) {
	for _, m := range n.members {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

// get returns the value of a key, or nil if n is nil, not an object, or has no
// such key.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	m, _ := n.member(key)
	return m.value
}

// itemsOf returns the items of the list at a key, membersOf the members of the
// object at one. Both return nil if there is none.
func (n *node) itemsOf(key string) []*node {
	if n = n.get(key); n == nil {
		return nil
	}
	return n.items
}

func (n *node) membersOf(key string) []member {
	if n = n.get(key); n == nil {
		return nil
	}
	return n.members
}

func (n *node) has(key string) bool {
	_, ok := n.member(key)
	return ok
}

var plainKey = lazyregexp.New(`^[\w$-]+$`)

// below is the path of a key of the object at path: mcp.git, or
// mcp["My Server"] for keys that need quotes.
func below(path, key string) string {
	switch {
	case !plainKey().MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// at is the path of an item of the list at path.
func at(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}
