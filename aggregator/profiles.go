package aggregator

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/schema/profile"
)

// ProfilePrefix begins the Server of a Guest that is a profile.
const ProfilePrefix = "@"

// HasProfile reports whether a session may be about a profile.
func HasProfile(a *Aggregator, name string) bool {
	_, ok := a.config().Profiles[name]
	return ok
}

// UnknownNamespace says that no server has a name, or that there is no such profile.
func UnknownNamespace(a *Aggregator, namespace string) string {
	name, ok := strings.CutPrefix(namespace, ProfilePrefix)
	if !ok {
		return "unknown MCP server: " + namespace
	}
	err := &profile.UnknownError{Name: name, Known: slices.Sorted(maps.Keys(a.config().Profiles))}
	return err.Error() + "; " + err.Hint()
}

func inProfile(a *Aggregator, name, server string) bool {
	p, ok := a.config().Profiles[name]
	return ok && profile.Has(p, server)
}
