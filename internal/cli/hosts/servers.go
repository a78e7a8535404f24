package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Server is a server of a host, translated into an entry of dynmcp's config.
type Server struct {
	schema.Server
	Host  Host
	File  string   // the file that it was read from
	Key   string   // its name in the file
	Notes []string // for the user
	Sets  []string // the aggregator's profiles or tags that it belongs to

	list    []string // the keys of the object that it is in
	problem string   // why it cannot be in a config
}

// place returns the keys under which the server is in its file.
func (s *Server) place() []string { return append(slices.Clone(s.list), s.Key) }

// project returns the directory of the project that Claude Code uses the server for, empty
// for all projects.
func (s *Server) project() string {
	if len(s.list) == 3 && s.list[0] == "projects" {
		return s.list[1]
	}
	return ""
}

// Read reads the servers of a host's file, in its order. Servers that Claude Code has for
// the project in the working directory come first and hide others of the same name. notes
// are on other members of an aggregator's file.
func (h Host) Read(ctx context.Context, path string) (servers []Server, notes []string, err error) {
	data, _, err := regular.ReadOrPipe(ctx, path, regular.Large)
	if err != nil {
		return nil, nil, err
	}
	all, err := h.parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	dir, _ := os.Getwd()
	for _, project := range []string{dir, ""} {
		for _, s := range all {
			if s.project() == project && !slices.ContainsFunc(servers, func(t Server) bool { return t.Key == s.Key }) {
				servers = append(servers, s)
			}
		}
	}
	return servers, h.otherMembers(path, data), nil
}

// parse returns all servers of a host's file.
func (h Host) parse(path string, data []byte) ([]Server, error) {
	switch h.form {
	case ours:
		return h.written(path, data)
	case foreign:
		return h.translated(path, data)
	}
	lists, err := h.lists(path, data)
	if err != nil {
		return nil, err
	}
	dir, _ := os.Getwd()
	chosen := h.choice(path, data)
	var servers []Server
	for _, l := range lists {
		for _, m := range l.entries {
			name := m.Key
			r, ok := rewritingOf(m.Value.Compact())
			if !ok {
				if len(l.keys) > 1 && l.keys[0] == "projects" && l.keys[1] != dir {
					continue // of another project
				}
				return nil, fmt.Errorf("%s: the server %q is not written as %s writes it", path, name, h.Title)
			}
			if !r.hasEndpoint() && (h.Name == "zed" || h.Name == "opencode" && m.Value.Has("enabled")) {
				continue // settings of an extension, or an entry that only disables another
			}
			s := h.server(name, r)
			if chosen.excludes(name) {
				s.Disabled = true
				s.note("%s does not use it: its mcp says so", h.Title)
			}
			s.Host, s.File, s.list = h, path, l.keys
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// A choice is the mcp member of Gemini CLI's file, which selects the servers to use.
type choice struct{ Allowed, Excluded []string }

// choice returns the mcp member of Gemini CLI's file, and the zero value for other hosts.
func (h Host) choice(path string, data []byte) (c choice) {
	if h.Name != "gemini" {
		return choice{}
	}
	raw, err := syntax.GetJSON(path, data, []string{"mcp"})
	if err != nil || raw == nil || json.Unmarshal(raw, &c) != nil {
		return choice{}
	}
	return c
}

func (c choice) excludes(name string) bool {
	return slices.Contains(c.Excluded, name) || c.Allowed != nil && !slices.Contains(c.Allowed, name)
}

// written returns the servers of a config of dynmcp.
func (h Host) written(path string, data []byte) ([]Server, error) {
	found, err := schema.Written(path, data)
	var servers []Server
	for _, s := range found {
		servers = append(servers, Server{Server: s.WithoutDefaults(), Host: h, File: path, Key: s.Name})
	}
	return servers, err
}

// server returns the server of an entry.
func (h Host) server(name string, r *rewriting) Server {
	s := Server{Key: name, problem: r.problem, Sets: r.sets}
	r.normalize(h)
	raw, err := json.Marshal(r.members)
	if err == nil {
		s.Server, err = schema.HostEntry(name, raw, h.Name == "gemini", func(note string) { s.note("%s", note) })
	}
	if err != nil && s.problem == "" {
		s.problem = problemOf(err)
	}
	if s.Name = schema.ServerName(name); s.Name != name {
		s.note("it is called %q in %s", name, h.Title)
	}
	s.unwrap()
	s.withoutRelay()
	slices.Sort(s.Notes)
	s.Notes = append(slices.Compact(s.Notes), r.notes...)
	return s
}

// normalize renames members that only some hosts have to their common names.
func (r *rewriting) normalize(h Host) {
	members := r.members
	for key, value := range members {
		if text, _ := json.Marshal(value); slices.Contains([]string{"null", `""`, "[]", "{}"}, string(text)) || key == "trust" && value == false {
			delete(members, key)
		}
	}
	if _, ok := members["oauth"].(map[string]any); !ok || members["auth"] != nil { // otherwise it becomes auth
		r.drop("oauth")
	}
	for name, value := range r.object("http_headers") {
		r.header(name, fmt.Sprint(value))
	}
	for name, variable := range r.object("env_http_headers") {
		r.header(name, fmt.Sprintf("${%v}", variable))
	}
	if token := r.text("bearer_token_env_var"); token != "" {
		r.header("Authorization", "Bearer ${"+token+"}")
	}
	r.variables()
	unit := time.Millisecond
	if h.Name == "cline" || h.Name == "zed" {
		unit = time.Second
	}
	r.duration("timeout", "timeout", unit)
	r.duration("startup_timeout_sec", "load_timeout", time.Second)
	r.duration("tool_timeout_sec", "timeout", time.Second)
	if h.form == copilot && members["type"] == "local" { // opencode uses the same word
		r.drop("type")
	}
}

// variables adds the variables named in env_vars to env, and turns values that are not texts
// into texts.
func (r *rewriting) variables() {
	names, _ := r.members["env_vars"].([]any)
	env, _ := r.members["env"].(map[string]any)
	for _, name := range names {
		if name, ok := name.(string); ok {
			if env == nil {
				env = map[string]any{}
			}
			env[name] = "${" + name + ":-}"
			r.members["env"] = env
		}
	}
	r.drop("env_vars")
	for _, key := range []string{"env", "environment"} {
		env, _ := r.members[key].(map[string]any)
		for name, value := range env {
			if _, text := value.(string); !text {
				number, _ := json.Marshal(value) // fmt would write 1e+07
				env[name] = string(number)
			}
		}
	}
}

// duration replaces the member from, a number of units, by the member to, a duration as text.
func (r *rewriting) duration(from, to string, unit time.Duration) {
	if n, ok := r.members[from].(float64); ok {
		delete(r.members, from)
		r.members[to] = time.Duration(n * float64(unit)).String()
	}
}

func (r *rewriting) hasEndpoint() bool {
	return slices.ContainsFunc([]string{"command", "url", "httpUrl", "serverUrl"}, func(key string) bool { return r.members[key] != nil })
}

// NoteSecrets notes what may be a secret in the server.
func (s *Server) NoteSecrets() {
	for _, place := range s.SecretPlaces() {
		s.note("%s may hold a secret in plain text; --vars puts a variable in its place", place)
	}
}

// MoveSecrets replaces values that may be secrets by references. put stores a secret of a
// server under a name, and returns its reference.
func (s *Server) MoveSecrets(put func(server, name, value string) (reference string)) {
	s.Server = s.ReplaceSecrets(func(found schema.SecretUse) string {
		reference := put(s.Name, found.Name, found.Value)
		s.note("%s is taken from %s", found.Where, reference)
		return reference
	})
}

func (s *Server) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// Problem returns the reason why the server cannot be in a config of dynmcp, or "".
func (s *Server) Problem() string {
	if s.problem != "" {
		return s.problem
	}
	return problemOf(s.Check())
}

func problemOf(err error) string {
	if all, ok := errors.AsType[syntax.Errors](err); ok && len(all) > 0 {
		err = all[0]
	}
	if detail, ok := errors.AsType[*syntax.Error](err); ok {
		return strings.TrimPrefix(detail.Path+": ", ": ") + detail.Err.Error()
	}
	return ""
}

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
