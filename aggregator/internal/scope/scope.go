// Package scope determines the scope of a session: its surface, its view of the catalogue, and the
// lists that its host can read at one moment. It knows the config and the catalogue, and sends
// nothing.
package scope

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/extension"
	"github.com/dynmcp/dynmcp/aggregator/internal/exposed"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/schema"
)

// An Env is shared by the scopes of all sessions.
type Env struct {
	Fleet   *fleet.Fleet
	Catalog *catalog.Catalog
	Work    *work.Group
	Run     Run
	// Extensions are what is added for extensions of MCP.
	Extensions *extension.Set

	snapshots notify.Snapshots[kind]
}

// A Run has the config that is served.
type Run interface {
	Surfaces() *exposed.Surfaces
}

// Of returns the scope of a session.
func (e *Env) Of(s *sessions.Session) Scope { return Scope{s, e} }

// A Scope is a session together with its scope. A session may be limited to one server
// (sessions.Identity.Server), as if dynmcp wrapped that server alone, with its tools under their own
// names. Or it is limited to a profile of the config (sessions.Identity.ProfileName), with the profile's
// servers and overrides. The start of a server and the way to call it are as in the config without
// the profile.
type Scope struct {
	*sessions.Session
	env *Env
}

func (s Scope) set() *exposed.Set { return s.env.Run.Surfaces().Of(s.ProfileName) }

// HostProfile returns the profile of the session's host: the one that the config names, or that of
// the host's reported name, as far as known.
func (s Scope) HostProfile() *sessions.Profile {
	if named := s.env.Run.Surfaces().Whole.Config.Host; named != "" {
		return sessions.ProfileOf(named)
	}
	return s.Profile()
}

// StartupWait is how long a request waits for servers that are starting: the value of the config, or
// else that for the host, and at least the given time.
func (s Scope) StartupWait(least time.Duration) time.Duration {
	return s.set().Config.StartupWaitOr(max(least, s.HostProfile().StartupWait))
}

// Surface returns the surface for the host.
func (s Scope) Surface() *surface.Surface {
	set := s.set()
	switch {
	case s.Server != "":
		return &exposed.OneServer
	case s.TreeOnly:
		return set.Tree
	}
	return set.Surface(s.HostProfile())
}

// Single returns the only upstream of the session, nil if there are many.
func (s Scope) Single() *lazy.Upstream { return s.env.Fleet.Single(s.Session) }

// View returns the catalogue for the host.
func (s Scope) View() *catalog.View { return s.Views()[s.FollowedTasks()] }

// Plain returns the catalogue for a host without tasks.
func (s Scope) Plain() *catalog.View { return s.Views()[catalog.NoTasks] }

// Views returns the catalogue for sessions with the same scope.
func (s Scope) Views() *catalog.Views {
	return withSplit(s.env.Fleet.Views(s.Session), s.set().Splits(s.HostProfile()))
}

// withSplit returns views with the texts for hosts for which use_tool is split or not.
func withSplit(views *catalog.Views, split bool) *catalog.Views {
	if split {
		return views.Split()
	}
	return views
}

// isStable reports whether the host's list of tools is kept unchanged.
func (s Scope) isStable() bool {
	if s.Single() != nil {
		return false // one server is shown unchanged
	}
	switch s.env.Run.Surfaces().Whole.Config.Catalog.Stable {
	case schema.StableOn:
		return true
	case schema.StableOff:
		return false
	}
	return s.HostProfile().Freezes && !s.Surface().Direct // or a tool that comes later could not be called
}

// Instructions returns the instructions for the handshake, "" if there are none: those of the config, then
// those of the surface.
func (s Scope) Instructions() string {
	text := s.Surface().Text(func(t surface.Texts) string { return t.Instructions(s.Plain()) })
	if own := strings.TrimSpace(s.set().Config.Instructions); own != "" {
		text = strings.TrimSpace(own + "\n\n" + text)
	}
	return text
}

// Offers reports whether a capability is declared to the host.
func (s Scope) Offers(capability string) bool {
	view := s.Plain()
	return wire.Get(view.Capabilities(!view.Complete()), capability) != nil
}

// FollowedTasks returns the kinds of tasks that the host can use. In the handshake era that requires
// tools under their own names: a call of use_tool cannot be a task.
func (s Scope) FollowedTasks() catalog.Tasks {
	follows := s.Declaration().Tasks
	if follows == catalog.HandshakeTasks && !s.Surface().Direct {
		return catalog.NoTasks
	}
	return follows
}

// WithTasks returns the capabilities for the host, with the tasks that it can use.
func (s Scope) WithTasks(capabilities json.RawMessage) json.RawMessage {
	return task.Advertise(capabilities, s.FollowedTasks(), s.Plain())
}
