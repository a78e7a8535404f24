package aggregator

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// ProfilePrefix begins the Server of an Identity that is a profile.
const ProfilePrefix = "@"

// A Directory answers what edges ask about the names in requests of hosts.
type Directory struct{ agg *Aggregator }

// Directory returns the names of the config that is served when its methods are called.
func (a *Aggregator) Directory() Directory { return Directory{a} }

// Connection says whether a server is connected, and as which process, 0 where it
// is remote. offered is false where there is no such server.
func (d Directory) Connection(server string) (pid int, connected, offered bool) {
	u := d.agg.set.Get(server)
	if u == nil {
		return 0, false, false
	}
	if conn := u.Conn(); conn != nil {
		return conn.Process().PID, true, true
	}
	return 0, false, true
}

// Named returns the name of the server that the config calls key: a key that is no name
// is changed to one.
func (d Directory) Named(key string) string {
	for _, s := range d.agg.config().Servers {
		if s.Written == key {
			return s.Name
		}
	}
	return key
}

// InputSchema returns that of a tool by its own name on the direct surface, of one
// server alone unless only is empty; nil if absent.
func (d Directory) InputSchema(only, name string) json.RawMessage {
	view := d.agg.catalog.View()
	if only != "" {
		view = d.agg.catalog.Single(only)[catalog.NoTasks]
	}
	if in, ok := strings.CutPrefix(only, ProfilePrefix); ok {
		view = d.agg.catalog.Profile(in)[catalog.NoTasks]
	}
	if t, ok := view.Direct(name); ok {
		return t.InputSchema
	}
	return nil
}

// TreeKind says what is at a path of the tree: a "node", a "tool" or "", nothing.
func (d Directory) TreeKind(where string) string {
	switch here := tree.Of(d.agg.config()).At(d.agg.catalog.View(), path.Clean("/"+strings.TrimSpace(where))); {
	case here.Tool != nil:
		return "tool"
	case here.Node != nil:
		return "node"
	}
	return ""
}

// HasProfile reports whether a session may be about a profile.
func (d Directory) HasProfile(name string) bool {
	_, ok := d.agg.config().Profiles[name]
	return ok
}

// Unknown says that no server has a name, or that there is no such profile.
func (d Directory) Unknown(namespace string) string {
	name, ok := strings.CutPrefix(namespace, ProfilePrefix)
	if !ok {
		return "unknown MCP server: " + namespace
	}
	err := &profile.UnknownError{Name: name, Known: slices.Sorted(maps.Keys(d.agg.config().Profiles))}
	return err.Error() + "; " + err.Hint()
}
