package aggregator

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// ProfilePrefix begins the Server of an Identity that is a profile.
const ProfilePrefix = "@"

// A Directory answers what edges ask about the names in requests of hosts.
type Directory struct{ agg *Aggregator }

// Directory returns the names of the config that is served when its methods are called.
func (a *Aggregator) Directory() Directory { return Directory{a} }

// Connection reports whether a server is connected, and the PID of its process, 0 if it
// is remote. offered is false if there is no such server.
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

// Named returns the name of the server with a key of the config. The two differ if the key
// is not a valid name.
func (d Directory) Named(key string) string {
	for _, s := range d.agg.config().Servers {
		if s.Written == key {
			return s.Name
		}
	}
	return key
}

// InputSchema returns the input schema of a tool of a principal by its name on the direct surface; nil
// if there is no such tool. If only is not empty, it names the one server or profile to look in.
func (d Directory) InputSchema(principal, only, name string) json.RawMessage {
	views := d.agg.catalog.Views()
	if only != "" {
		views = d.agg.catalog.Single(only)
	}
	if in, ok := strings.CutPrefix(only, ProfilePrefix); ok {
		views = d.agg.catalog.Profile(in)
	}
	if t, ok := views.With(d.agg.catalog.Own(principal))[catalog.NoTasks].Direct(name); ok {
		return t.InputSchema
	}
	return nil
}

// TreeKind returns what is at a path of the tree for a principal: "node", "tool", or "" for nothing.
func (d Directory) TreeKind(principal, where string) string {
	if tree := d.agg.Tree(); tree != nil {
		return tree.Kind(d.agg.catalog.ViewFor(principal), where)
	}
	return ""
}

// HasProfile reports whether the config has a profile.
func (d Directory) HasProfile(name string) bool {
	_, ok := d.agg.config().Profiles[name]
	return ok
}

// Unknown returns the error text for an unknown server or profile.
func (d Directory) Unknown(namespace string) string {
	name, ok := strings.CutPrefix(namespace, ProfilePrefix)
	if !ok {
		return "unknown server: " + namespace
	}
	err := &profile.UnknownError{Name: name, Known: slices.Sorted(maps.Keys(d.agg.config().Profiles))}
	return err.Error() + "; " + err.Hint()
}
