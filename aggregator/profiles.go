package aggregator

import (
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/schema"
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

// A face is what hosts see of a config: of all of it, or of a profile.
type face struct {
	cfg             *schema.Config
	seen, seenSplit surfaces         // seenSplit is for hosts for which use_tool is split
	tree            *surface.Surface // for guests of the tree
}

func newFace(cfg *schema.Config) (f face, err error) {
	f.cfg = cfg
	if f.seen, err = newSurfaces(cfg); err != nil {
		return f, err
	}
	split := *cfg
	split.UseTool = schema.UseToolSplit
	if f.seenSplit, err = newSurfaces(&split); err != nil {
		return f, err
	}
	f.tree, _ = newSurface(cfg, []string{schema.ExposeTree}, "")
	return f, nil
}

// newFaces returns the faces of the profiles of a config. That of "" shows nothing: a
// reload may take away the profile of a session.
func newFaces(cfg *schema.Config) (map[string]*face, error) {
	nothing := *cfg
	nothing.Servers, nothing.Tree, nothing.Pin = nil, nil, nil
	parts := map[string]*schema.Config{"": &nothing}
	for name := range cfg.Profiles {
		part, err := profile.Select(cfg, name)
		if err != nil {
			return nil, err
		}
		parts[name] = part
	}
	faces := map[string]*face{}
	for name, part := range parts {
		f, err := newFace(part)
		if err != nil {
			return nil, err
		}
		faces[name] = &f
	}
	return faces, nil
}

// faceOf returns what a session's host sees of the config.
func faceOf(s session) *face {
	st := s.agg.state.Load()
	if s.In == "" {
		return &st.face
	}
	if f := st.profiles[s.In]; f != nil {
		return f
	}
	return st.profiles[""]
}

func inProfile(a *Aggregator, name, server string) bool {
	p, ok := a.config().Profiles[name]
	return ok && profile.Has(p, server)
}
