package main

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

// A hostServer is a server as any of the hosts writes it: each has a few of
// these keys.
type hostServer struct {
	Type, Transport, Description string
	Command                      words
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

// words is a command line that may be written as one text or as a list.
type words []string

func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = words{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(data, &all)
	*w = all
	return err
}

// A found server is one that a host has, as a config of ours would have it.
type found struct {
	schema.Server
	from  string   // the file
	notes []string // what the user should know about it
}

// readHost reads the servers of a host's file, in its order.
func readHost(h host, path string) ([]found, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, order, err := hostServers(h, path, data)
	if err != nil {
		return nil, err
	}
	var all []found
	for _, name := range order {
		var s hostServer
		if err := json.Unmarshal(raw[name], &s); err != nil {
			return nil, fmt.Errorf("%s: the server %q is not written as %s writes it", path, name, h.title)
		}
		f := s.found(h, name)
		f.from = path
		all = append(all, f)
	}
	return all, nil
}

// hostServers are the servers of a file as JSON, and their names in order.
func hostServers(h host, path string, data []byte) (map[string]json.RawMessage, []string, error) {
	if h.toml() {
		return tomlServers(path, data)
	}
	servers := map[string]json.RawMessage{}
	var order []string
	for _, keys := range serverPaths(h) {
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

// serverPaths are where a host's JSON has servers. Claude Code keeps those of a
// project under its directory, and they win.
func serverPaths(h host) [][]string {
	paths := [][]string{{h.key}}
	if h.name == "claude-code" {
		if dir, err := os.Getwd(); err == nil {
			paths = slices.Insert(paths, 0, []string{"projects", dir, h.key})
		}
	}
	return paths
}

func tomlServers(path string, data []byte) (map[string]json.RawMessage, []string, error) {
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
	slices.SortFunc(order, func(a, b string) int {
		return cmp.Or(tomlPlace(statements, a)-tomlPlace(statements, b), strings.Compare(a, b))
	})
	return servers, order, nil
}

func tomlPlace(statements []tomlLine, name string) int {
	return slices.IndexFunc(statements, func(s tomlLine) bool {
		return len(s.header) > 1 && s.header[0] == "mcp_servers" && s.header[1] == name
	})
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// found is the server as a config of ours would have it.
func (s *hostServer) found(h host, name string) found {
	f := found{}
	f.Name = strings.Trim(notInName.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if f.Name != name {
		f.note("it is called %q in %s", name, h.title)
	}
	f.Description = strings.TrimSpace(s.Description)
	f.Disabled = s.Disabled || s.Enabled != nil && !*s.Enabled
	f.LoadTimeout = seconds(s.StartupTimeoutSec)
	f.Timeout = max(seconds(s.ToolTimeoutSec), seconds(s.Timeout/1000))
	f.ToolFilter = slices.Concat(s.IncludeTools, s.EnabledTools)
	for _, tool := range slices.Concat(s.ExcludeTools, s.DisabledTools) {
		f.ToolFilter = append(f.ToolFilter, "!"+tool)
	}
	if len(s.Command) > 0 {
		s.program(&f)
	} else {
		s.address(&f, h)
	}
	if len(s.OAuth) > 0 && string(s.OAuth) != "null" {
		f.note("its login is not taken over")
	}
	f.rewrite(h)
	return f
}

func (f *found) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (s *hostServer) program(f *found) {
	f.Transport, f.Command, f.Cwd = schema.Stdio, s.Command[0], s.Cwd
	f.Args = slices.Concat(s.Command[1:], s.Args)
	for key, value := range s.Env {
		put(&f.Env, key, fmt.Sprint(value))
	}
	for _, name := range s.EnvVars {
		if name, ok := name.(string); ok {
			put(&f.Env, name, "${"+name+":-}")
		}
	}
	if s.EnvFile != "" {
		f.note("its env file %s is not read; give it to dynmcp with -e, or copy its variables", s.EnvFile)
	}
}

func (s *hostServer) address(f *found, h host) {
	f.URL = cmp.Or(s.HTTPURL, s.ServerURL, s.URL)
	f.Transport = schema.StreamableHTTP
	kind := cmp.Or(s.Type, s.Transport)
	if kind == schema.SSE || kind == "" && h.name == "gemini" && s.HTTPURL == "" {
		f.Transport = schema.SSE
	}
	for _, headers := range []map[string]string{s.Headers, s.HTTPHeaders} {
		for key, value := range headers {
			put(&f.Headers, key, value)
		}
	}
	for key, name := range s.EnvHTTPHeaders {
		put(&f.Headers, key, "${"+name+"}")
	}
	if s.BearerTokenEnvVar != "" {
		put(&f.Headers, "Authorization", "Bearer ${"+s.BearerTokenEnvVar+"}")
	}
}

var (
	envReference   = regexp.MustCompile(`\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)
	inputReference = regexp.MustCompile(`\$\{input:([^}]+)\}`)
	bareReference  = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)
	hostReference  = regexp.MustCompile(`\$\{(workspaceFolder|workspaceFolderBasename|userHome|pathSeparator|/)\}`)
)

// rewrite turns references as hosts write them into ours.
func (f *found) rewrite(h host) {
	f.Command = f.reference(h, f.Command)
	f.URL = f.reference(h, f.URL)
	f.Cwd = f.reference(h, f.Cwd)
	for i, arg := range f.Args {
		f.Args[i] = f.reference(h, arg)
	}
	for _, values := range []map[string]string{f.Env, f.Headers} {
		for key, value := range values {
			values[key] = f.reference(h, value)
		}
	}
	slices.Sort(f.notes)
	f.notes = slices.Compact(f.notes)
}

func (f *found) reference(h host, text string) string {
	text = envReference.ReplaceAllString(text, "$${$1}")
	text = inputReference.ReplaceAllStringFunc(text, func(whole string) string {
		id := inputReference.FindStringSubmatch(whole)[1]
		name := strings.ToUpper(strings.Trim(notInVariable.ReplaceAllString(id, "_"), "_"))
		f.note("%s asks for %s; dynmcp takes it from the variable %s", h.title, id, name)
		return "${" + name + "}"
	})
	if h.name == "gemini" {
		text = bareReference.ReplaceAllString(text, "$${$1}")
	}
	return hostReference.ReplaceAllStringFunc(text, func(whole string) string {
		path := hostPath(whole)
		f.note("%s is only known to %s; %s is written in its place", whole, h.title, path)
		return path
	})
}

// hostPath is what stands for the paths that VS Code and Cursor have words for,
// in a project where import is run.
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

// itself reports whether the server is dynmcp, which is not to be taken over
// into its own config.
func (f *found) itself() bool {
	name := strings.TrimSuffix(filepath.Base(f.Command), ".exe")
	return name == "dynmcp" && !slices.Contains(f.Args, "--")
}

// problem says why the server cannot be taken over, empty if it can.
func (f *found) problem() string {
	err := f.Check()
	var detail *schema.Error
	if errors.As(err, &detail) {
		return strings.TrimPrefix(detail.Path+": ", ": ") + detail.Err.Error()
	}
	return ""
}
