package hostfile

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

func isEmpty(n *syntax.Node) bool {
	return n.Kind == syntax.Null || n.Kind == syntax.Text && n.Scalar == "" || (n.Kind == syntax.List || n.Kind == syntax.Object) && len(n.Items)+len(n.Members) == 0
}

func text(n *syntax.Node, s string) *syntax.Node {
	return &syntax.Node{Kind: syntax.Text, At: n.At, Scalar: s}
}

// asText returns a number, true or false as text, and any other value as it is.
func asText(n *syntax.Node) *syntax.Node {
	if n.Kind == syntax.Number || n.Kind == syntax.Boolean {
		return text(n, n.Scalar)
	}
	return n
}

func scalar(n *syntax.Node) string {
	if n == nil {
		return ""
	}
	return n.Scalar
}

// below returns the value that keys lead to, or nil.
func below(n *syntax.Node, keys []string) *syntax.Node {
	for _, key := range keys {
		n = n.Get(key)
	}
	return n
}

func object(at syntax.Pos, members ...syntax.Member) *syntax.Node {
	n := &syntax.Node{Kind: syntax.Object, At: at}
	for _, m := range members {
		if m.Value != nil {
			m.At = at
			n.Members = append(n.Members, m)
		}
	}
	return n
}

func textList(at syntax.Pos, words []string) *syntax.Node {
	n := &syntax.Node{Kind: syntax.List, At: at}
	for _, word := range words {
		n.Items = append(n.Items, &syntax.Node{Kind: syntax.Text, At: at, Scalar: word})
	}
	return n
}

// first returns the first of the members of n that there is.
func first(n *syntax.Node, keys ...string) *syntax.Node {
	for _, key := range keys {
		if v := n.Get(key); v != nil {
			return v
		}
	}
	return nil
}

func itemsOf(n *syntax.Node) []*syntax.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// joined returns the texts of a list as one, with spaces between them.
func joined(list *syntax.Node) *syntax.Node {
	var words []string
	for _, item := range list.Items {
		words = append(words, item.Scalar)
	}
	return text(list, strings.Join(words, " "))
}

// isList reports whether n can hold servers.
func isList(n *syntax.Node) bool {
	return n != nil && (n.Kind == syntax.Object || n.Kind == syntax.List)
}

// isBare reports whether a document is the servers by name, and nothing around them.
func isBare(root *syntax.Node) bool {
	found := false
	for _, m := range root.Members {
		switch {
		case looksLikeEntry(m.Value):
			found = true
		case m.Key != "$schema" && m.Value.Kind != syntax.Object:
			return false
		}
	}
	return found
}

func looksLikeEntry(n *syntax.Node) bool {
	return n != nil && n.Kind == syntax.Object && slices.ContainsFunc(reaching, func(key string) bool {
		v := n.Get(key)
		return v != nil && (v.Kind == syntax.Text || v.Kind == syntax.List)
	})
}
