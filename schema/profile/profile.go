// Package profile selects the part of a config that belongs to a profile.
package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema"
)

// All selects every server, unless a profile has this name.
const All = "all"

// Has reports whether a server of this name is in a profile.
func Has(p schema.Profile, server string) bool {
	in, only := false, false
	for _, pattern := range p.Servers {
		pattern, out := strings.CutPrefix(pattern, "!")
		glob, err := toolglob.Compile(pattern)
		matches := err == nil && glob.MatchString(server)
		switch {
		case out && matches:
			return false
		case !out:
			only, in = true, in || matches
		}
	}
	return in || !only
}

// An UnknownError is the error for a profile that does not exist.
type UnknownError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownError) Error() string { return fmt.Sprintf("unknown profile %q", e.Name) }

// Hint suggests what to do.
func (e *UnknownError) Hint() string {
	switch near := nearest.Word(e.Name, e.Known); {
	case near != "":
		return fmt.Sprintf("did you mean %s?", near)
	case len(e.Known) == 0:
		return `the config has no profiles; add "profiles", as docs/profiles.md says`
	}
	return "there are " + strings.Join(e.Known, ", ")
}

// Select returns the config with only the servers of a profile, changed by its overrides. ""
// and All return it unchanged.
func Select(c *schema.Config, name string) (*schema.Config, error) {
	p, known := c.Profiles[name]
	switch {
	case name == "", name == All && !known:
		whole := *c
		whole.Profile = ""
		return &whole, nil
	case !known:
		return nil, &UnknownError{name, slices.Sorted(maps.Keys(c.Profiles))}
	}
	part := *c
	part.Profile, part.Profiles, part.Servers = name, map[string]schema.Profile{name: p}, nil
	for _, s := range c.Servers {
		if !Has(p, s.Name) {
			continue
		}
		o := p.Overrides[s.Name]
		if o.Description != "" {
			s.Description = o.Description
		}
		if o.ToolFilter != nil {
			s.ToolFilter = o.ToolFilter
		}
		part.Servers = append(part.Servers, s)
	}
	part.Pin = slices.DeleteFunc(slices.Clone(c.Pin), func(tool string) bool {
		server, _, _ := strings.Cut(tool, "/")
		return !Has(p, server)
	})
	if c.Tree != nil {
		part.Tree, _ = prune(c.Tree, p)
	}
	if len(p.Expose) > 0 {
		return part.WithExpose(p.Expose), nil
	}
	return &part, nil
}

// prune returns the part of a node that is in a profile; ok is false if it is empty.
func prune(n *schema.Node, p schema.Profile) (part *schema.Node, ok bool) {
	kept := *n
	kept.Children = nil
	if s := n.Source; s != nil && !Has(p, s.Server) {
		kept.Source = nil
	}
	for i := range n.Children {
		if child, ok := prune(&n.Children[i], p); ok {
			kept.Children = append(kept.Children, *child)
		}
	}
	return &kept, kept.Source != nil || len(kept.Children) > 0
}
