//go:build linux || darwin

package box

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/dynmcp/dynmcp/internal/packages"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// A runnerConfig is a file in which a package runner finds its registries, and their passwords.
type runnerConfig struct {
	path     string                   // below the home directory
	variable string                   // names another file
	stores   []string                 // of the runners
	public   func(text string) string // the file without passwords
}

var runnerConfigs = []runnerConfig{
	{".npmrc", "NPM_CONFIG_USERCONFIG", []string{"npm", "bun", "pnpm", "yarn"}, publicLines},
	{".config/pip/pip.conf", "PIP_CONFIG_FILE", []string{"pipx"}, publicLines},
	{".config/uv/uv.toml", "UV_CONFIG_FILE", []string{"uv"}, publicTOML},
}

// A copied is a file for a server's temporary directory.
type copied struct{ name, variable, text string }

// registries returns copies of its runner's configs without passwords. A config that the entry
// allows to be read, or that its environment names, is not copied.
func (s Server) registries() (all []copied) {
	home := s.variable("HOME")
	allowed := func(path string) bool {
		var paths []string
		for _, named := range slices.Concat(s.Read, s.Write) {
			paths = append(paths, sandbox.Resolve(absolute(named, s.Dir, home)))
		}
		return below(paths, sandbox.Resolve(path))
	}
	runner := packages.Runners[s.Runner]
	for _, config := range runnerConfigs {
		path := filepath.Join(home, config.path)
		if home == "" || !slices.Contains(config.stores, runner.Store) || allowed(path) ||
			s.variable(config.variable) != "" || s.variable(strings.ToLower(config.variable)) != "" {
			continue
		}
		if text, err := regular.Read(context.Background(), path, regular.Small); err == nil {
			all = append(all, copied{filepath.Base(path), config.variable, config.public(string(text))})
		}
	}
	return all
}

// publicKeys are the settings of npm and pip that are handed over. Others may be passwords,
// or commands.
var publicKeys = []string{"registry", "index-url", "extra-index-url", "trusted-host", "proxy", "https-proxy", "noproxy", "strict-ssl"}

// publicLines returns the lines of an npmrc or a pip.conf that have one of publicKeys, without
// addresses that may have a password, and its sections.
func publicLines(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, _ := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if scope, key, ok := strings.Cut(name, ":"); ok && strings.HasPrefix(scope, "@") && key == "registry" { // @scope:registry
			name = key
		}
		section := strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]")
		public := slices.Contains(publicKeys, strings.ReplaceAll(name, "_", "-")) && isPublic(strings.Trim(value, `"'`))
		if section || public {
			kept.WriteString(line + "\n")
		}
	}
	return kept.String()
}

// publicTOML returns the indexes of a uv.toml, without those that may have a password.
func publicTOML(text string) string {
	type index struct {
		Name     string `toml:"name,omitempty"`
		URL      string `toml:"url"`
		Default  bool   `toml:"default,omitempty"`
		Explicit bool   `toml:"explicit,omitempty"`
		Format   string `toml:"format,omitempty"`
	}
	var settings struct {
		Index      []index  `toml:"index,omitempty"`
		IndexURL   string   `toml:"index-url,omitempty"`
		ExtraIndex []string `toml:"extra-index-url,omitempty"`
		Python     string   `toml:"python-install-mirror,omitempty"`
		Strategy   string   `toml:"index-strategy,omitempty"`
	}
	if toml.Unmarshal([]byte(text), &settings) != nil {
		return ""
	}
	settings.Index = slices.DeleteFunc(settings.Index, func(i index) bool { return !isPublic(i.URL) })
	settings.ExtraIndex = slices.DeleteFunc(settings.ExtraIndex, func(address string) bool { return !isPublic(address) })
	for _, address := range []*string{&settings.IndexURL, &settings.Python} {
		if !isPublic(*address) {
			*address = ""
		}
	}
	public, err := toml.Marshal(settings)
	if err != nil {
		return ""
	}
	return string(public)
}

// isPublic reports whether no word of a value is an address with a password, nor one whose
// parts are not known, such as those with a variable.
func isPublic(value string) bool {
	return !slices.ContainsFunc(strings.Fields(value), func(word string) bool {
		u, err := url.Parse(word)
		return err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(word, "@$%")
	})
}
