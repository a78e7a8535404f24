package schema

import (
	"slices"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// AddToProfile returns the text of a config, the file of this name, with a server in a profile.
// A profile that is more than a list of servers stays as it is.
func AddToProfile(name string, data []byte, profile, server string) ([]byte, error) {
	root, err := (&syntax.Source{Name: name, Data: data}).Parse()
	if err != nil {
		return nil, err
	}
	list := root.Get("profiles").Get(profile)
	switch {
	case list == nil:
		list = &syntax.Node{Kind: syntax.List}
	case list.Kind != syntax.List || slices.ContainsFunc(list.Items, func(n *syntax.Node) bool { return n.Scalar == server }):
		return data, nil
	}
	more := &syntax.Node{Kind: syntax.List, Items: append(slices.Clone(list.Items), textNode(server))}
	return syntax.Edit(name, data, root, []string{"profiles", profile}, more)
}
