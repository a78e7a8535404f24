package schema

import (
	"cmp"
	"regexp"
	"strconv"
)

// kind is the kind of a value in JSON's terms; YAML is read into the same.
type kind int

const (
	null kind = iota
	boolean
	number
	text
	list
	object
)

// String names the kind the way errors speak of a value.
func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "an object"}[k]
}

// pos is a place in a file, counted from 1, columns in characters.
type pos struct{ line, col int }

// compare orders places the way a reader meets them.
func (p pos) compare(q pos) int {
	return cmp.Or(p.line-q.line, p.col-q.col)
}

// node is one value of a document, wherever it was written.
type node struct {
	kind kind
	at   pos

	scalar  string   // a text decoded, a number as written, true or false
	items   []*node  // of a list
	members []member // of an object, in file order

	// hidden is set on texts that hold the value of a variable: errors must
	// not show them.
	hidden bool
	// unresolved is set on texts that refer to a variable nobody defined:
	// that is reported once and nothing else about the text is worth saying.
	unresolved bool
}

// member is one key of an object with its value.
type member struct {
	key string
	// written is the key as the file has it, when a host's spelling was
	// changed to ours; paths in errors use it.
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

// get returns the value of a key, nil when n is nil, no object, or has no such
// key.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	m, _ := n.member(key)
	return m.value
}

func (n *node) has(key string) bool {
	_, ok := n.member(key)
	return ok
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_$-]+$`)

// below is the path of a key inside the value at path: mcp.git, or
// mcp["My Server"] for keys that would read as several.
func below(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
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
