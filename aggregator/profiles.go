package aggregator

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/schema/profile"
)

// A session may be about a profile of the config (sessions.Session.In): it sees the servers
// of that, as the profile has them, and reaches no other. When a server starts, and how it
// is called, is as the config has it without the profile.

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

// exposedTo returns what hosts see of the config that a session is about.
func exposedTo(s session) *exposed.Set {
	st := s.agg.state.Load()
	if s.In == "" {
		return st.exposed
	}
	return cmp.Or(st.profiles[s.In], st.profiles[""])
}

// surface returns what the session's host sees.
func (s session) surface() *surface.Surface {
	set := exposedTo(s)
	switch {
	case s.Only != "":
		return &exposed.OneServer
	case s.Tree:
		return set.Tree
	}
	return set.Surface(s.hostProfile())
}

func inProfile(a *Aggregator, name, server string) bool {
	p, ok := a.config().Profiles[name]
	return ok && profile.Has(p, server)
}
