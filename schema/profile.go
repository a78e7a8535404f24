package schema

import (
	"bytes"
	"reflect"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/toolglob"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// Profile is a set of servers, with the settings that apply while it is used.
type Profile struct {
	// The servers: names and globs; a leading ! excludes. With only such patterns, all other servers are in it.
	Servers []string `json:"servers" required:"true" nonblank:"true" example:"[github, jira, \"!*-prod\"]"`
	// The surfaces that hosts of the profile see. Left out, those of the file.
	Expose []string `json:"expose" enum:"surfaces" default:"[]" example:"[direct]"`
	// By server: the settings that differ in the profile.
	Overrides map[string]ProfileOverride `json:"overrides" default:"{}" example:"{files: {tool_filter: [\"get_*\"]}}"`
}

// ProfileOverride has the settings of a server that differ in a profile.
type ProfileOverride struct {
	// The description of the server in the profile.
	Description string `json:"description" nonblank:"true" example:"Issues of the team. Use for anything about planned work."`
	// The tool_filter of the server in the profile, in place of its own.
	ToolFilter []string `json:"tool_filter" default:"[]" example:"[\"get_*\"]"`
}

// profile decodes a profile: an object, or the list of its servers.
func (r *reading) profile(path string, n *syntax.Node, p *Profile) {
	if n.Kind == syntax.List {
		n = &syntax.Node{Kind: syntax.Object, At: n.At, Members: []syntax.Member{{Key: "servers", At: n.At, Value: n}}}
	}
	if n.Kind != syntax.Object {
		r.fail(n.At, path, "this is "+n.Kind.String(), `want a list of servers, or an object such as {"servers": ["github"], "expose": ["direct"]}`)
		return
	}
	type plain Profile // without the rule for Profile
	r.plain(path, n, reflect.ValueOf((*plain)(p)).Elem(), field{})
}

// checkProfiles checks the names in profiles. With a tree, names of servers are not checked,
// because its servers get theirs later.
func checkProfiles(r *reading, root *syntax.Node, profiles map[string]Profile) {
	for _, m := range root.MembersOf("profiles") {
		path := syntax.Below("profiles", m.Key)
		if !serverName().MatchString(m.Key) {
			r.fail(m.At, path, "invalid profile name", nameHint(ServerName(m.Key)))
		}
		n, inner := m.Value, path
		if n.Kind == syntax.Object {
			n, inner = n.Get("servers"), syntax.Below(path, "servers")
			checkSurfaces(r, syntax.Below(path, "expose"), m.Value.Get("expose"), profiles[m.Key].Expose)
		}
		if n != nil && n.Kind == syntax.List {
			checkProfileServers(r, root, inner, n)
		}
		for _, o := range m.Value.MembersOf("overrides") {
			at := syntax.Below(syntax.Below(path, "overrides"), o.Key)
			if !root.Has("tree") {
				r.checkMountedServer(at, &syntax.Node{Kind: syntax.Text, At: o.At, Scalar: o.Key}, o.Key)
			}
			r.checkTools(at, o.Value)
		}
	}
}

func checkProfileServers(r *reading, root *syntax.Node, path string, list *syntax.Node) {
	if len(list.Items) == 0 {
		r.fail(list.At, path, "there are no servers in this profile", `name some, or write ["*"] for all`)
	}
	for i, item := range list.Items {
		at := syntax.Item(path, i)
		name := strings.TrimPrefix(item.Scalar, "!")
		switch {
		case item.Kind != syntax.Text || strings.TrimSpace(name) == "":
		case serverName().MatchString(name):
			if !root.Has("tree") {
				r.checkMountedServer(at, item, name)
			}
		default:
			if _, err := toolglob.Compile(name); err != nil {
				r.fail(item.At, at, "this is not a glob: "+err.Error(), "write the name of a server, with * for any letters")
			}
		}
	}
}

// mergeProfiles adds the profiles of farther files that no nearer file has.
func (c *Config) mergeProfiles(layers []*reading) {
	for _, r := range slices.Backward(layers) {
		for name, p := range r.doc.Profiles {
			if c.Profiles == nil {
				c.Profiles = map[string]Profile{}
			}
			c.Profiles[name] = p
		}
	}
}

// WithExpose returns the config with other surfaces, unless the options set them.
func (c *Config) WithExpose(expose []string) *Config {
	other := *c
	if !c.exposeFixed {
		other.Expose = expose
	}
	return &other
}

// needless returns, for each file, the paths of unselected parts, whose references are
// not resolved; nil if everything is selected. Load reports the errors of the files.
func (f *Files) needless() ([]map[string]bool, error) {
	if f.opts.Select == nil || f.opts.Only == nil && !slices.ContainsFunc(f.config, func(c content) bool { return bytes.Contains(c.data, []byte("profile")) }) {
		return nil, nil
	}
	first := *f
	first.opts.Secret, first.opts.Strict = nil, false
	cfg, layers, err := first.load(nil)
	if err != nil {
		return nil, nil
	}
	selected, err := f.opts.Select(cfg)
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, s := range selected.Servers {
		needed[s.Name] = f.opts.Only == nil || slices.Contains(f.opts.Only, s.Name)
	}
	all := make([]map[string]bool, len(layers))
	for i, r := range layers {
		all[i] = map[string]bool{}
		for path, name := range r.entries {
			all[i][path] = !needed[name]
		}
		for source, at := range r.sources {
			all[i][at.path] = source.Command != "" && !needed[source.Server]
		}
	}
	return all, nil
}
