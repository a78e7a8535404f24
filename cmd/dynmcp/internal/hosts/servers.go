package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// An entry is a server as any of the hosts writes it: each has a few of these
// keys.
type entry struct {
	Type, Transport, Description string
	TransportType                string // Cline's older form
	Command                      commandLine
	Args                         []string
	Env, Environment             map[string]any
	Cwd                          string
	URL, HTTPURL, ServerURL      string
	Headers                      map[string]string
	Disabled                     bool
	Enabled                      *bool
	Timeout                      float64 // milliseconds, but for Cline and Zed
	Tools                        []string
	IncludeTools, ExcludeTools   []string
	EnvFile                      string
	EnabledTools                 []string          `json:"enabled_tools"`
	DisabledTools                []string          `json:"disabled_tools"`
	HiddenTools                  []string          `json:"disabledTools"`
	HTTPHeaders                  map[string]string `json:"http_headers"`
	EnvHTTPHeaders               map[string]string `json:"env_http_headers"`
	BearerTokenEnvVar            string            `json:"bearer_token_env_var"`
	EnvVars                      []any             `json:"env_vars"`
	StartupTimeoutSec            float64           `json:"startup_timeout_sec"`
	ToolTimeoutSec               float64           `json:"tool_timeout_sec"`
	OAuth                        json.RawMessage
	Auth                         *cursorAuth
}

// cursorAuth is the OAuth client of a server in Cursor.
type cursorAuth struct {
	ID     string   `json:"CLIENT_ID"`
	Secret string   `json:"CLIENT_SECRET"`
	Scopes []string `json:"scopes"`
}

// dropped are keys of hosts that are not taken over, with what to say of them.
var dropped = map[string]string{
	"trust":       "what may be called without asking is the host's part",
	"autoApprove": "what may be called without asking is the host's part",
	"alwaysAllow": "what may be called without asking is the host's part",
	"settings":    "they are for an extension of the host",
}

// noteDropped notes the keys of an entry that are not taken over.
func (s *Server) noteDropped(raw json.RawMessage) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members)                                                             // it was an object a moment ago
	known := []string{"gallery", "version", "source", "name", "dev", "sandbox", "sandboxEnabled"} // say nothing about how a server is reached
	for field := range reflect.TypeFor[entry]().Fields() {
		known = append(known, strings.ToLower(cmp.Or(field.Tag.Get("json"), field.Name)))
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		value := string(members[key])
		switch why, ok := dropped[key]; {
		case value == "null" || value == "[]" || value == "{}" || value == "false":
		case ok:
			s.note("its %s is not taken over: %s", key, why)
		case !slices.Contains(known, strings.ToLower(key)):
			s.note("its %s is not taken over", key)
		}
	}
}

// A commandLine may be written as one string or as a list.
type commandLine []string

func (c *commandLine) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*c = commandLine{one}
		return nil
	}
	var zed struct { // as Zed wrote it once
		Path string
		Args []string
	}
	if json.Unmarshal(data, &zed) == nil && zed.Path != "" {
		*c = append(commandLine{zed.Path}, zed.Args...)
		return nil
	}
	var all []string
	err := json.Unmarshal(data, &all)
	*c = all
	return err
}

// A Server is one that a host has, as a config of dynmcp would have it.
type Server struct {
	schema.Server
	Host  Host     // whose it is
	File  string   // where it was read
	Key   string   // what it is called there
	Notes []string // what the user should know about it
	Sets  []string // those that it is in, where an aggregator has such

	list    []string // the keys of the object that it is in
	problem string   // why it cannot be in a config
}

// place returns the keys under which the server is in its file.
func (s *Server) place() []string { return append(slices.Clone(s.list), s.Key) }

// project returns the directory for which Claude Code keeps the server, empty if it
// is one of all projects.
func (s *Server) project() string {
	if len(s.list) == 3 && s.list[0] == "projects" {
		return s.list[1]
	}
	return ""
}

// Read reads the servers of a host's file, in its order. Those that Claude Code keeps
// for the project in the working directory come first, and win. What else an aggregator has in
// its file is in beside.
func (h Host) Read(ctx context.Context, path string) (servers []Server, beside []string, err error) {
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
	return servers, h.beside(path, data), nil
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
	var servers []Server
	for _, l := range lists {
		unused := h.unused(path, data, l.order)
		for _, name := range l.order {
			var e entry
			if err := json.Unmarshal(l.entries[name], &e); err != nil {
				if len(l.keys) > 1 && l.keys[0] == "projects" && l.keys[1] != dir {
					continue // of a project that nobody asked for
				}
				return nil, fmt.Errorf("%s: the server %q is not written as %s writes it", path, name, h.Title)
			}
			if len(e.Command) == 0 && e.URL == "" && e.HTTPURL == "" && e.ServerURL == "" && h.isPartial(l.entries[name]) {
				continue // an extension's, or it only switches another off
			}
			s := e.server(h, name)
			s.noteDropped(l.entries[name])
			if unused[name] {
				s.Disabled = true
				s.note("%s does not use it: its mcp says so", h.Title)
			}
			s.Host, s.File, s.list = h, path, l.keys
			servers = append(servers, s)
		}
	}
	return servers, nil
}

// isPartial reports whether an entry is not meant to say how a server is reached.
func (h Host) isPartial(raw json.RawMessage) bool {
	return h.Name == "zed" || h.Name == "opencode" && strings.Contains(string(raw), `"enabled"`)
}

// unused returns the servers that Gemini CLI's mcp keeps from being used.
func (h Host) unused(path string, data []byte, names []string) map[string]bool {
	var choice struct{ Allowed, Excluded []string }
	unused := map[string]bool{}
	if h.Name != "gemini" {
		return unused
	}
	if raw, err := syntax.GetJSON(path, data, []string{"mcp"}); err != nil || raw == nil || json.Unmarshal(raw, &choice) != nil {
		return unused
	}
	for _, name := range names {
		unused[name] = slices.Contains(choice.Excluded, name) || choice.Allowed != nil && !slices.Contains(choice.Allowed, name)
	}
	return unused
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

// server converts an entry.
func (e *entry) server(h Host, name string) Server {
	s := Server{Key: name}
	s.Name = schema.ServerName(name)
	if s.Name != name {
		s.note("it is called %q in %s", name, h.Title)
	}
	s.Description = strings.TrimSpace(e.Description)
	s.Disabled = e.Disabled || e.Enabled != nil && !*e.Enabled
	s.LoadTimeout = seconds(e.StartupTimeoutSec)
	s.Timeout = max(seconds(e.ToolTimeoutSec), e.callTimeout(h))
	s.ToolFilter = e.toolFilter()
	if len(e.Command) > 0 {
		e.setCommand(&s)
	} else {
		e.setURL(&s)
	}
	if e.Auth != nil && e.Auth.ID != "" && s.Transport != schema.Stdio {
		s.Auth = &schema.Auth{ClientID: e.Auth.ID, ClientSecret: e.Auth.Secret, Scope: strings.Join(e.Auth.Scopes, " ")}
	}
	if len(e.OAuth) > 0 && !slices.Contains([]string{"null", "false", "{}"}, string(e.OAuth)) {
		s.note("its login is not taken over")
	}
	s.unwrap()
	s.withoutRelay()
	s.convertReferences(h)
	return s
}

// callTimeout returns how long a call may take, which hosts write in different units.
func (e *entry) callTimeout(h Host) time.Duration {
	switch h.Name {
	case "cline", "zed":
		return seconds(e.Timeout)
	case "opencode":
		return 0 // it is for listing tools, and too short for a call
	}
	return seconds(e.Timeout / 1000)
}

// toolFilter returns the tools that the host is shown, and with ! those that it is not.
func (e *entry) toolFilter() (filter []string) {
	if !slices.Equal(e.Tools, []string{"*"}) {
		filter = e.Tools
	}
	filter = slices.Concat(filter, e.IncludeTools, e.EnabledTools)
	for _, tool := range slices.Concat(e.ExcludeTools, e.DisabledTools, e.HiddenTools) {
		filter = append(filter, "!"+tool)
	}
	return filter
}

func (s *Server) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (e *entry) setCommand(s *Server) {
	s.Transport, s.Command, s.Cwd = schema.Stdio, e.Command[0], e.Cwd
	s.Args = slices.Concat(e.Command[1:], e.Args)
	for _, env := range []map[string]any{e.Env, e.Environment} {
		for key, value := range env {
			put(&s.Env, key, fmt.Sprint(value))
		}
	}
	for _, name := range e.EnvVars {
		if name, ok := name.(string); ok {
			put(&s.Env, name, "${"+name+":-}")
		}
	}
	if e.EnvFile != "" {
		s.note("its env file %s is not read; give it to dynmcp with -e, or copy its variables", e.EnvFile)
	}
}

func (e *entry) setURL(s *Server) {
	s.URL = cmp.Or(e.HTTPURL, e.ServerURL, e.URL)
	switch kind := cmp.Or(e.Type, e.Transport, e.TransportType); {
	case kind == schema.SSE:
		s.Transport = schema.SSE
	case kind == schema.StreamableHTTP || slices.Contains(schema.HTTPAliases, kind) || e.HTTPURL != "":
		s.Transport = schema.StreamableHTTP
	} // else dynmcp finds out, as hosts do
	for _, headers := range []map[string]string{e.Headers, e.HTTPHeaders} {
		for key, value := range headers {
			put(&s.Headers, key, value)
		}
	}
	for key, name := range e.EnvHTTPHeaders {
		put(&s.Headers, key, "${"+name+"}")
	}
	if e.BearerTokenEnvVar != "" {
		put(&s.Headers, "Authorization", "Bearer ${"+e.BearerTokenEnvVar+"}")
	}
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

// convertReferences turns references as hosts write them into ours.
func (s *Server) convertReferences(h Host) {
	s.Command = s.convert(h, s.Command)
	s.URL = s.convert(h, s.URL)
	s.Cwd = s.convert(h, s.Cwd)
	for i, arg := range s.Args {
		s.Args[i] = s.convert(h, arg)
	}
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for key, value := range values {
			values[key] = s.convert(h, value)
		}
	}
	slices.Sort(s.Notes)
	s.Notes = slices.Compact(s.Notes)
}

func (s *Server) convert(h Host, text string) string {
	return schema.HostReferences(text, h.Name == "gemini", func(note string) { s.note("%s", note) })
}

// Problem says why the server cannot be in a config of dynmcp, empty if it can.
func (s *Server) Problem() string {
	if s.problem != "" {
		return s.problem
	}
	if detail, ok := errors.AsType[*syntax.Error](s.Check()); ok {
		return strings.TrimPrefix(detail.Path+": ", ": ") + detail.Err.Error()
	}
	return ""
}
