package hosts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"dynmcp/schema"
)

// An entry is a server as any of the hosts writes it: each has a few of these
// keys.
type entry struct {
	Type, Transport, Description string
	Command                      commandLine
	Args                         []string
	Env                          map[string]any
	Cwd                          string
	URL, HTTPURL, ServerURL      string
	Headers                      map[string]string
	Disabled                     bool
	Enabled                      *bool
	Timeout                      float64 // Gemini CLI, milliseconds
	IncludeTools, ExcludeTools   []string
	EnvFile                      string
	EnabledTools                 []string          `json:"enabled_tools"`
	DisabledTools                []string          `json:"disabled_tools"`
	HTTPHeaders                  map[string]string `json:"http_headers"`
	EnvHTTPHeaders               map[string]string `json:"env_http_headers"`
	BearerTokenEnvVar            string            `json:"bearer_token_env_var"`
	EnvVars                      []any             `json:"env_vars"`
	StartupTimeoutSec            float64           `json:"startup_timeout_sec"`
	ToolTimeoutSec               float64           `json:"tool_timeout_sec"`
	OAuth                        json.RawMessage
}

// A commandLine may be written as one string or as a list.
type commandLine []string

func (c *commandLine) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*c = commandLine{one}
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
	File  string   // where it was read
	Key   string   // what it is called there
	Notes []string // what the user should know about it
}

// Read reads the servers of a host's file, in its order.
func (h Host) Read(path string) ([]Server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	entries, order, err := h.entries(path, data)
	if err != nil {
		return nil, err
	}
	var servers []Server
	for _, name := range order {
		var e entry
		if err := json.Unmarshal(entries[name], &e); err != nil {
			return nil, fmt.Errorf("%s: the server %q is not written as %s writes it", path, name, h.Title)
		}
		s := e.server(h, name)
		s.File = path
		servers = append(servers, s)
	}
	return servers, nil
}

// entries returns the servers of a file as JSON, and their names in order.
func (h Host) entries(path string, data []byte) (map[string]json.RawMessage, []string, error) {
	if h.isTOML() {
		return tomlEntries(path, data)
	}
	servers := map[string]json.RawMessage{}
	var order []string
	paths := [][]string{{h.key}}
	// Claude Code keeps servers of a project under its directory, and they win.
	if dir, err := os.Getwd(); err == nil && h.Name == "claude-code" {
		paths = slices.Insert(paths, 0, []string{"projects", dir, h.key})
	}
	for _, keys := range paths {
		list, err := schema.GetJSON(path, data, keys)
		if err != nil {
			return nil, nil, err
		}
		value, err := hujson.Parse(list)
		object, ok := value.Value.(*hujson.Object)
		if err != nil || !ok {
			continue
		}
		for _, m := range object.Members {
			name := m.Name.Value.(hujson.Literal).String()
			if servers[name] == nil {
				order = append(order, name)
				servers[name] = m.Value.Pack()
			}
		}
	}
	return servers, order, nil
}

func tomlEntries(path string, data []byte) (map[string]json.RawMessage, []string, error) {
	var doc struct {
		Servers map[string]any `toml:"mcp_servers"`
	}
	if err := toml.Unmarshal(data, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s is not TOML", path) // the parser shows the line, which may hold a secret
	}
	servers := map[string]json.RawMessage{}
	for name, value := range doc.Servers {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: the server %q: %w", path, name, err)
		}
		servers[name] = raw
	}
	order := slices.Collect(maps.Keys(servers))
	statements, err := tomlStatements(data)
	if err != nil {
		return nil, nil, err
	}
	place := func(name string) int {
		return slices.IndexFunc(statements, func(s tomlStatement) bool {
			return len(s.header) > 1 && s.header[0] == "mcp_servers" && s.header[1] == name
		})
	}
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
	return servers, order, nil
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// server converts an entry.
func (e *entry) server(h Host, name string) Server {
	s := Server{Key: name}
	s.Name = strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if s.Name != name {
		s.note("it is called %q in %s", name, h.Title)
	}
	s.Description = strings.TrimSpace(e.Description)
	s.Disabled = e.Disabled || e.Enabled != nil && !*e.Enabled
	s.LoadTimeout = seconds(e.StartupTimeoutSec)
	s.Timeout = max(seconds(e.ToolTimeoutSec), seconds(e.Timeout/1000))
	s.ToolFilter = slices.Concat(e.IncludeTools, e.EnabledTools)
	for _, tool := range slices.Concat(e.ExcludeTools, e.DisabledTools) {
		s.ToolFilter = append(s.ToolFilter, "!"+tool)
	}
	if len(e.Command) > 0 {
		e.setCommand(&s)
	} else {
		e.setURL(&s, h)
	}
	if len(e.OAuth) > 0 && string(e.OAuth) != "null" {
		s.note("its login is not taken over")
	}
	s.unwrap()
	s.convertReferences(h)
	return s
}

func (s *Server) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (e *entry) setCommand(s *Server) {
	s.Transport, s.Command, s.Cwd = schema.Stdio, e.Command[0], e.Cwd
	s.Args = slices.Concat(e.Command[1:], e.Args)
	for key, value := range e.Env {
		put(&s.Env, key, fmt.Sprint(value))
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

func (e *entry) setURL(s *Server, h Host) {
	s.URL = cmp.Or(e.HTTPURL, e.ServerURL, e.URL)
	s.Transport = schema.StreamableHTTP
	kind := cmp.Or(e.Type, e.Transport)
	if kind == schema.SSE || kind == "" && h.Name == "gemini" && e.HTTPURL == "" {
		s.Transport = schema.SSE
	}
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

var (
	envReference   = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputReference = regexp.MustCompile(`\$\{input:([^}]+)\}`)
	bareReference  = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	pathReference  = regexp.MustCompile(`\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}`)
)

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
	text = envReference.ReplaceAllString(text, "$${$1}")
	text = inputReference.ReplaceAllStringFunc(text, func(reference string) string {
		id := inputReference.FindStringSubmatch(reference)[1]
		name := variableName(id)
		s.note("%s asks for %s; dynmcp takes it from the variable %s", h.Title, id, name)
		return "${" + name + "}"
	})
	if h.Name == "gemini" {
		text = bareReference.ReplaceAllString(text, "$${$1}")
	}
	return pathReference.ReplaceAllStringFunc(text, func(reference string) string {
		path := hostPath(reference)
		s.note("%s is only known to %s; %s is written in its place", reference, h.Title, path)
		return path
	})
}

// hostPath returns what VS Code and Cursor would put in the place of a reference,
// were the working directory their project.
func hostPath(reference string) string {
	dir, _ := os.Getwd()
	switch reference {
	case "${userHome}":
		home, _ := os.UserHomeDir()
		return home
	case "${workspaceFolder}":
		return dir
	case "${workspaceFolderBasename}":
		return filepath.Base(dir)
	default:
		return string(filepath.Separator)
	}
}

var notInVariable = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// variableName makes a name for a variable of any text.
func variableName(text string) string {
	return strings.ToUpper(strings.Trim(notInVariable.ReplaceAllString(text, "_"), "_"))
}

// Problem says why the server cannot be in a config of dynmcp, empty if it can.
func (s *Server) Problem() string {
	var detail *schema.Error
	if errors.As(s.Check(), &detail) {
		return strings.TrimPrefix(detail.Path+": ", ": ") + detail.Err.Error()
	}
	return ""
}
