package hosts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A serverList is an object of a file with the servers in it.
type serverList struct {
	keys    []string // under which it is
	entries map[string]json.RawMessage
	order   []string
}

// lists returns the lists of a file. Claude Code keeps some in its user's file under
// the directories of projects.
func (h Host) lists(path string, data []byte) ([]serverList, error) {
	keys := h.path(path, data)
	if h.isTOML() {
		entries, order, err := tomlEntries(path, data)
		return []serverList{{keys, entries, order}}, err
	}
	raw, err := syntax.GetJSON(path, data, keys)
	if err != nil {
		return nil, err
	}
	lists := []serverList{listOf(raw, keys)}
	if h.Name != "claude-code" {
		return lists, nil
	}
	raw, err = syntax.GetJSON(path, data, []string{"projects"})
	projects := listOf(raw, nil)
	for _, dir := range projects.order {
		var project map[string]json.RawMessage
		if json.Unmarshal(projects.entries[dir], &project) == nil {
			lists = append(lists, listOf(project[h.key], []string{"projects", dir, h.key}))
		}
	}
	return lists, err
}

// listOf returns the members of a JSON object in their order; any other value has no members.
func listOf(raw []byte, keys []string) serverList {
	l := serverList{keys: keys, entries: map[string]json.RawMessage{}}
	value, err := hujson.Parse(raw)
	object, ok := value.Value.(*hujson.Object)
	if err != nil || !ok {
		return l
	}
	for _, m := range object.Members {
		if name := m.Name.Value.(hujson.Literal).String(); l.entries[name] == nil {
			l.order = append(l.order, name)
			l.entries[name] = m.Value.Pack()
		}
	}
	return l
}

func tomlEntries(path string, data []byte) (map[string]json.RawMessage, []string, error) {
	var doc struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s is not TOML", path) // the parser shows the line, which may hold a secret
	}
	servers := map[string]json.RawMessage{}
	for name, value := range doc.Servers {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: the server %q: %w", path, name, err)
		}
		servers[name] = raw
	}
	order := slices.Collect(maps.Keys(servers))
	statements, err := tomlStatements(data)
	if err != nil {
		return nil, nil, err
	}
	place := func(name string) int {
		return slices.IndexFunc(statements, func(s tomlStatement) bool {
			return len(s.header) > 1 && s.header[0] == "mcp_servers" && s.header[1] == name
		})
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
	return servers, order, nil
}
