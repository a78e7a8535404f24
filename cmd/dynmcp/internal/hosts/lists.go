package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A serverList is an object of a file that holds servers.
type serverList struct {
	keys    []string // where it is in the file
	entries []syntax.Member
}

// lists returns the lists of a file. The user's file of Claude Code has one for each
// project, under the project's directory.
func (h Host) lists(path string, data []byte) ([]serverList, error) {
	keys := h.path(path, data)
	if h.isTOML() {
		entries, err := tomlEntries(path, data)
		return []serverList{{keys, entries}}, err
	}
	root, err := syntax.ParseJSON(path, data)
	if err != nil {
		return nil, err
	}
	holder := root
	for _, key := range keys[:len(keys)-1] {
		holder = holder.Get(key)
	}
	lists := []serverList{{keys, holder.MembersOf(keys[len(keys)-1])}}
	if h.Name != "claude-code" {
		return lists, nil
	}
	for _, project := range root.MembersOf("projects") {
		lists = append(lists, serverList{[]string{"projects", project.Key, h.key}, project.Value.MembersOf(h.key)})
	}
	return lists, nil
}

// tomlEntries returns the servers of a TOML file in its order.
func tomlEntries(path string, data []byte) (entries []syntax.Member, err error) {
	var doc struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s is not TOML", path) // the parser shows the line, which may hold a secret
	}
	statements, err := tomlStatements(data)
	if err != nil {
		return nil, err
	}
	for name, value := range doc.Servers {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: the server %q: %w", path, name, err)
		}
		entry, err := syntax.ParseJSON(path, raw)
		if err != nil {
			return nil, err
		}
		entries = append(entries, syntax.Member{Key: name, Value: entry})
	}
	place := func(name string) int {
		return slices.IndexFunc(statements, func(s tomlStatement) bool {
			return len(s.header) > 1 && s.header[0] == "mcp_servers" && s.header[1] == name
		})
	}
	slices.SortFunc(entries, func(a, b syntax.Member) int {
		return cmp.Or(place(a.Key)-place(b.Key), strings.Compare(a.Key, b.Key))
	})
	return entries, nil
}
