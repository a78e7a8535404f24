package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/modules/policy/arguments"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A mistake is an error in a rule, or in the list of them.
type mistake struct {
	At         syntax.Pos
	Path       string
	What, Hint string
}

// mistakes returns the mistakes in the list of rules at a path: what each says, and that no rule is evaded by
// spelling a call otherwise.
func mistakes(path string, list []*syntax.Node) (all []mistake) {
	for i, item := range list {
		below := syntax.Item(path, i)
		all = append(all, checkArguments(syntax.Below(below, "arguments"), list, i)...)
		open := !slices.ContainsFunc(item.Members, func(m syntax.Member) bool { return m.Key != "do" && m.Value.Kind != syntax.Null })
		switch last := i == len(list)-1; {
		case last && !open:
			all = append(all, mistake{item.At, below, "there is no rule for all other calls", `end the list with {"do": "allow"} or {"do": "deny"}`})
		case !last && open:
			all = append(all, mistake{item.At, below, "the rules after this one are never reached", "move it to the end, or say what it is for"})
		}
	}
	return all
}

// textOf returns a text of a rule, "" if it has none.
func textOf(rule *syntax.Node, key string) string {
	if n := rule.Get(key); n != nil && n.Kind == syntax.Text {
		return n.Scalar
	}
	return ""
}

// checkArguments checks the schema of a rule, and that arguments which it does not describe get
// no more than those that it does: a call can always be spelled otherwise.
func checkArguments(path string, list []*syntax.Node, i int) (all []mistake) {
	n := list[i].Get("arguments")
	if n == nil || n.Kind == syntax.Null {
		return nil
	}
	match := syntax.Quote(cmp.Or(textOf(list[i], "match"), "SERVER/TOOL"))
	switch other := allowsRest(list, i); {
	case textOf(list[i], "do") == "deny":
		all = append(all, mistake{n.At, path, "deny together with arguments lets the same arguments pass in other spellings",
			fmt.Sprintf(`allow what is known and deny the rest: {"match": %s, "do": "allow", "arguments": {…}}, {"match": %[1]s, "do": "deny"}`, match)})
	case textOf(list[i], "do") == "ask" && other > 0:
		all = append(all, mistake{n.At, path, fmt.Sprintf("nobody is asked about the same arguments in other spellings: rule %d allows them", other),
			fmt.Sprintf(`allow what is known and ask about the rest: {"match": %s, "do": "allow", "arguments": {…}}, {"match": %[1]s, "do": "ask"}`, match)})
	}
	_, err := arguments.Compile(n.Compact())
	mistakes, _ := errors.AsType[arguments.Mistakes](err)
	for _, m := range mistakes {
		at, below, last := n, path, ""
		for _, key := range m.Path {
			if i, err := strconv.Atoi(key); err == nil && i < len(at.Items) {
				at, below, last = at.Items[i], syntax.Item(below, i), ""
			} else if at.Has(key) {
				at, below, last = at.Get(key), syntax.Below(below, key), syntax.Quote(key)+": "
			}
		}
		if m.Type != "" {
			m.Hint = "write " + last + withType(at, m.Type)
		}
		all = append(all, mistake{at.At, below, m.Text, m.Hint})
	}
	return all
}

// withType returns a schema with a type added.
func withType(n *syntax.Node, name string) string {
	typed := syntax.Node{Kind: syntax.Object, Members: []syntax.Member{{Key: "type", Value: &syntax.Node{Kind: syntax.Text, Scalar: name}}}}
	if len(n.Inline()) <= 200 {
		typed.Members = append(typed.Members, n.Members...)
		return typed.Inline()
	}
	return strings.TrimSuffix(typed.Inline(), "}") + ", …}"
}

// allowsRest returns the number of the rule, from 1, that may allow calls whose arguments do not
// satisfy rule i without having judged them, 0 if there is none.
func allowsRest(list []*syntax.Node, i int) int {
	covers := func(wide *syntax.Node) bool {
		for _, key := range []string{"match", "principal", "host", "surface"} {
			if text := textOf(wide, key); text != "" && text != textOf(list[i], key) {
				return false
			}
		}
		return true
	}
	for j, other := range list[i+1:] {
		if other.Has("arguments") || toolglob.Apart(textOf(list[i], "match"), textOf(other, "match")) {
			continue
		}
		if textOf(other, "do") == "allow" {
			return i + j + 2
		}
		if covers(other) {
			return 0
		}
	}
	return 0
}
