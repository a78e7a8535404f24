package syntax

import (
	"cmp"
	"strconv"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
)

// Kind is the kind of a JSON value; YAML is read into the same kinds.
type Kind int

// The kinds.
const (
	Null Kind = iota
	Boolean
	Number
	Text
	List
	Object
)

// String returns the kind as errors name it.
func (k Kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "a list", "an object"}[k]
}

// Pos is a position in a file, counted from 1, columns in characters.
type Pos struct{ Line, Col int }

// Compare orders positions as they are in the file.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(p.Line-q.Line, p.Col-q.Col)
}

// Node is a value of a document.
type Node struct {
	Kind Kind
	At   Pos

	From, To int // of a value of JSON, in bytes of the text; 0 otherwise

	Scalar  string   // a decoded string, a number as written, true or false
	Items   []*Node  // of a list
	Members []Member // of an object, in file order

	// Expanded is set on strings that had a reference to a variable: errors must not show
	// them.
	Expanded bool
	// Unresolved is set on strings that refer to an undefined variable. That is
	// reported once, and the string is not checked further.
	Unresolved bool
}

// Member is one key of an object with its value.
type Member struct {
	Key string
	// Written is the key in the file if a host's key was renamed to ours. Paths in
	// errors use it.
	Written string
	At      Pos
	Value   *Node
}

// Name is the key as errors show it.
func (m Member) Name() string {
	if m.Written != "" {
		return m.Written
	}
	return m.Key
}

// Member returns the first member with the key.
func (n *Node) Member(key string) (Member, bool) {
	for _, m := range n.Members {
		if m.Key == key {
			return m, true
		}
	}
	return Member{}, false
}

// Get returns the value of a key, or nil if n is nil, not an object, or has no
// such key.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	m, _ := n.Member(key)
	return m.Value
}

// ItemsOf returns the items of the list at a key, or nil if absent.
func (n *Node) ItemsOf(key string) []*Node {
	if n = n.Get(key); n == nil {
		return nil
	}
	return n.Items
}

// MembersOf returns the members of the object at a key, or nil if absent.
func (n *Node) MembersOf(key string) []Member {
	if n = n.Get(key); n == nil {
		return nil
	}
	return n.Members
}

// Has reports whether n has the key.
func (n *Node) Has(key string) bool {
	_, ok := n.Member(key)
	return ok
}

var plainKey = lazyregexp.New(`^[\w$-]+$`)

// Below is the path of a key of the object at path: mcp.git, or
// mcp["My Server"] for keys that need quotes.
func Below(path, key string) string {
	switch {
	case !plainKey().MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// Below returns the value that keys and indices lead to, or the last one there is on the way, and
// its path.
func (n *Node) Below(at ...any) (inner *Node, path string) {
	for _, step := range at {
		next := n
		switch step := step.(type) {
		case string:
			next, path = n.Get(step), Below(path, step)
		case int:
			path = Item(path, step)
			if next = nil; step < len(n.Items) {
				next = n.Items[step]
			}
		}
		if next != nil {
			n = next
		}
	}
	return n, path
}

// Item is the path of an item of the list at path.
func Item(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

// IsText reports whether n is this text.
func (n *Node) IsText(s string) bool { return n != nil && n.Kind == Text && n.Scalar == s }
