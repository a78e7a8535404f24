package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/hostfile"
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
	// Renamed says which keys of the host are read as which of dynmcp.
	Renamed []string

	list    []string // the keys of the object that it is in
	folder  string   // of its project, where its host starts it
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
// are on servers that are left out, and on other members of an aggregator's file.
func (h Host) Read(ctx context.Context, path string) (servers []Server, notes []string, err error) {
	data, _, err := regular.ReadOrPipe(ctx, path, regular.Large)
	if err != nil {
		return nil, nil, err
	}
	h.sections = module.SectionsOf(ctx)
	servers, notes, err = h.parse(path, data)
	return servers, append(notes, h.otherMembers(path, data)...), err
}

// parse returns the servers of a host's file.
func (h Host) parse(path string, data []byte) (servers []Server, notes []string, err error) {
	switch h.form {
	case ours:
		servers, err = h.written(path, data)
		return servers, nil, err
	case foreign:
		servers, err = h.translated(path, data)
		return servers, nil, err
	}
	var host *hostfile.Host
	if h.Name != hostfile.Other.Name {
		host = h.Host
	}
	found, notes, err := schema.HostServers(host, path, data, h.sections)
	if err != nil && h.isTOML() {
		return nil, nil, fmt.Errorf("%s is not TOML", path) // the parser shows the line, which may hold a secret
	}
	for _, f := range found {
		if f.Entry.Value.Kind != syntax.Object {
			return nil, nil, fmt.Errorf("%s: the server %q is not written as %s writes it", path, f.Entry.Key, h.Title)
		}
		servers = append(servers, h.of(path, f))
	}
	return servers, notes, err
}

// of returns a server of the file at path.
func (h Host) of(path string, f schema.HostServer) Server {
	s := Server{Server: f.Server, Host: h, File: path, Key: f.Entry.Key, Notes: f.Notes, list: f.Entry.List, folder: f.Entry.Folder(), problem: problemOf(f.Err)}
	for _, m := range f.Entry.Value.Members {
		if m.Written != "" && m.Written != m.Key {
			s.Renamed = append(s.Renamed, m.Written+" as "+m.Key)
		}
	}
	s.finish()
	return s
}

// parseAll returns the servers of all projects in Claude Code's file, too.
func (h Host) parseAll(path string, data []byte) ([]Server, error) {
	servers, _, err := h.parse(path, data)
	root, failed := (&syntax.Source{Name: path, Data: data}).Parse()
	if h.Name != "claude-code" || err != nil || failed != nil {
		return servers, err
	}
	lists := [][]string{{"mcpServers"}}
	for _, project := range root.MembersOf("projects") {
		lists = append(lists, []string{"projects", project.Key, "mcpServers"})
	}
	servers = nil
	for _, list := range lists {
		found, err := schema.HostServersAt(h.Host, path, data, list, h.sections)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			servers = append(servers, h.of(path, f))
		}
	}
	return servers, nil
}

// written returns the servers of a config of dynmcp.
func (h Host) written(path string, data []byte) ([]Server, error) {
	found, err := schema.Written(path, data, h.sections)
	var servers []Server
	for _, s := range found {
		servers = append(servers, Server{Server: s.WithoutDefaults(), Host: h, File: path, Key: s.Name})
	}
	return servers, err
}

// server returns the server of an entry that was rewritten as hosts write it.
func (h Host) server(name string, r *rewriting) Server {
	s := Server{Key: name, problem: r.problem, Sets: r.sets, Host: h}
	raw, err := json.Marshal(r.members)
	if err == nil {
		s.Server, err = schema.HostEntry(name, raw, h.sections, func(note string) { s.note("%s", note) })
	}
	if err != nil && s.problem == "" {
		s.problem = problemOf(err)
	}
	s.finish()
	s.Notes = append(s.Notes, r.notes...)
	return s
}

// finish gives the server its name, and leaves out what only relays its messages.
func (s *Server) finish() {
	if s.Name = schema.ServerName(s.Key); s.Name == "" {
		s.Name = "server"
	}
	if s.Name != s.Key {
		s.note("it is called %q in %s", s.Key, s.Host.Title)
	}
	s.unwrap()
	s.withoutRelay()
	slices.Sort(s.Notes)
	s.Notes = slices.Compact(s.Notes)
}

// SetFolder makes the server run in the folder of its project, if that is not dir: where its host
// starts it.
func (s *Server) SetFolder(dir string) {
	if s.Command == "" || s.Cwd != "" || s.folder == "" || SameFile(s.folder, dir) {
		return
	}
	s.Cwd = s.folder
	s.note("it runs in %s, the folder of its project", s.folder)
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
