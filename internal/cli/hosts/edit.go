package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/hostfile"
	"github.com/dynmcp/dynmcp/schema/mask"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Set returns the text of a host's file at path with a server of this name that
// runs command. An entry that says the same in another layout is left alone.
func (h Host) Set(path string, text []byte, name, command string, args []string) ([]byte, error) {
	if h.isTOML() {
		return h.editTOML(path, text, name, []string{"command = " + tomlString(command), "args = " + tomlStrings(args)})
	}
	value, err := json.Marshal(h.entry(command, args))
	if err != nil {
		return nil, err
	}
	keys := append(slices.Clone(h.path(path, text)), name)
	if old, err := syntax.GetJSON(path, text, keys); err == nil && bytes.Equal(old, value) {
		return text, nil
	}
	return syntax.SetJSON(path, text, keys, value)
}

// entry returns the value of a server that runs command, in the host's form.
func (h Host) entry(command string, args []string) any {
	entry := struct {
		Type    string   `json:"type,omitempty"`
		Command any      `json:"command"`
		Args    []string `json:"args,omitempty"`
		Tools   []string `json:"tools,omitempty"`
	}{Command: command, Args: args}
	switch h.Form {
	case hostfile.Opencode:
		entry.Type, entry.Command, entry.Args = "local", append([]string{command}, args...), nil
	case hostfile.Copilot:
		entry.Type, entry.Tools = "local", []string{"*"}
	case hostfile.Typed:
		entry.Type = "stdio"
	}
	return entry
}

// path returns the keys of the object that holds the servers in a host's file. Version 2
// of opencode uses mcp.servers.
func (h Host) path(path string, text []byte) []string {
	if h.Form == hostfile.Opencode {
		root, _ := syntax.ParseJSON(path, text) // nil with an error, which is reported later
		servers := root.Get("mcp").Get("servers")
		if kind := servers.Get("type"); servers != nil && (kind == nil || kind.Kind != syntax.Text) {
			return []string{"mcp", "servers"}
		}
	}
	return h.Lists[0]
}

// remove returns the text of a host's file at path without the server at the keys place.
func (h Host) remove(path string, text []byte, place []string) ([]byte, error) {
	switch {
	case h.isTOML():
		return h.editTOML(path, text, place[len(place)-1], nil)
	case len(bytes.TrimSpace(text)) == 0:
		return text, nil
	}
	return syntax.RemoveJSON(path, text, place)
}

var validName = lazyregexp.New(schema.NamePattern)

func (h Host) editTOML(path string, text []byte, name string, body []string) ([]byte, error) {
	if body != nil && !validName().MatchString(name) {
		return nil, fmt.Errorf("%q cannot be the name of a table; use lower-case letters, digits and hyphens", name)
	}
	edited, err := setTOML(text, []string{h.Lists[0][0], name}, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return edited, nil
}

// Mask returns the text of a host's file at path for display. Values that may be secrets
// are replaced by ***.
func (h Host) Mask(path string, text []byte) []byte {
	if h.isTOML() {
		return maskTOML(text)
	}
	return mask.File(path, text)
}

// AddToProfile returns data, the config file called name, with server added to profile.
// A profile that is not a plain list of servers stays as it is.
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
	more := &syntax.Node{Kind: syntax.List, Items: append(slices.Clone(list.Items), &syntax.Node{Kind: syntax.Text, Scalar: server})}
	return syntax.Edit(name, data, root, []string{"profiles", profile}, more)
}
