// Package hosts reads and edits the config files of MCP hosts (Claude Code, Cursor, Codex
// and others).
//
// Reading translates the servers into entries of dynmcp's config, with notes on what could
// not be taken over. Editing sets or removes one server and keeps every other byte of the
// file; it works on text, and the caller writes the file.
package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/nearest"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/schema/hostfile"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Host is a program with MCP servers in its own config.
type Host struct {
	*hostfile.Host
	Project string // its file in a project's folder, empty if it has none

	key     string           // of an aggregator: the member of the config that holds the servers
	rewrite func(*rewriting) // of an aggregator: translates one of its entries into one of a host
	form    form

	sections []schema.Section // the keys of the program's modules, set while a file is read
}

// A form says what reads a file if that is not the table of hosts.
type form int

const (
	hosts   form = iota
	ours         // a config of dynmcp, or one that dynmcp reads
	foreign      // that of another aggregator
)

// isTOML reports whether the host's config is TOML.
func (h Host) isTOML() bool { return h.Form == hostfile.TOML }

// ownConfig is the host of a config of dynmcp.
var ownConfig = Host{Host: &hostfile.Host{Title: "dynmcp", Form: hostfile.ReadOnly}, form: ours}

var all = known()

// known returns the hosts of the table, and MCP Browser, whose files dynmcp reads as its own.
func known() (all []Host) {
	for _, h := range hostfile.All {
		all = append(all, of(h))
	}
	return append(all, Host{Host: &hostfile.Host{Name: "mcp-browser", Title: "MCP Browser", Project: []string{".mcp-browser/config.yaml"},
		User: []string{"~/.mcp-browser/config.yaml"}, Form: hostfile.ReadOnly}, Project: ".mcp-browser/config.yaml", form: ours})
}

func of(h *hostfile.Host) Host {
	host := Host{Host: h}
	if len(h.Project) > 0 && !strings.Contains(h.Project[0], "*") {
		host.Project = h.Project[0]
	}
	return host
}

// IsHost reports whether dynmcp can be put into h. The servers of other programs are only
// read.
func (h Host) IsHost() bool { return h.Form != hostfile.ReadOnly }

// All returns the known hosts.
func All() []Host { return all }

// Names returns the names of the known hosts.
func Names() []string { return namesOf(all) }

// Programs returns the names of the aggregators whose files are read.
func Programs() []string { return namesOf(programs) }

func namesOf(hosts []Host) (names []string) {
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}

// Installable returns the names of the hosts that dynmcp can be put into.
func Installable() []string {
	return namesOf(slices.DeleteFunc(slices.Clone(all), func(h Host) bool { return !h.IsHost() }))
}

// named returns the host called name, which must exist.
func named(name string) Host {
	known := slices.Concat(all, programs)
	return known[slices.IndexFunc(known, func(h Host) bool { return h.Name == name })]
}

// TwoLines lists names of hosts in two lines.
func TwoLines(names []string) string {
	half := (len(names) + 1) / 2
	return strings.Join(names[:half], ", ") + ",\n" + strings.Join(names[half:], ", ")
}

// Among returns the host called name, which must be one of among.
func Among(name string, among []string) (Host, error) {
	if !slices.Contains(among, name) {
		err := fmt.Errorf("unknown host %q", name)
		if near := nearest.Word(name, among); near != "" {
			return Host{}, hint.With(err, "did you mean %s?", near)
		}
		return Host{}, hint.With(err, "use %s", strings.Join(among, ", "))
	}
	return named(name), nil
}

// UserFile returns the path of the user's file: the first that exists, or else the first.
func (h Host) UserFile() (string, error) {
	files, err := h.UserFiles()
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	})
	return files[max(i, 0)], nil
}

// OtherVersions returns the user's files, other than path, that only another version of
// the host reads.
func (h Host) OtherVersions(path string) []string {
	files, err := h.UserFiles()
	if err != nil || h.Name != "cline" {
		return nil
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return err != nil || SameFile(file, path)
	})
}

// Files returns the paths of all files in which the host may have servers, the project's
// first.
func (h Host) Files() ([]string, error) {
	user, err := h.UserFiles()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, pattern := range h.Host.Project {
		if !strings.Contains(pattern, "*") {
			files = append(files, filepath.FromSlash(pattern))
			continue
		}
		found, _ := filepath.Glob(filepath.FromSlash(pattern)) // the pattern is in order
		files = append(files, found...)
	}
	return append(files, user...), nil
}

// InDirectory returns the first host or other program with a file in the working directory, and the file,
// "" if there is none.
func InDirectory() (h Host, file string) {
	for _, h := range slices.Concat(all, programs) {
		for _, path := range h.Host.Project {
			if info, err := os.Stat(filepath.FromSlash(path)); path != "" && err == nil && info.Mode().IsRegular() {
				return h, path
			}
		}
	}
	return Host{}, ""
}

// Owner returns the host that reads the file at path, as a file of this user or of the
// project in the working directory.
func Owner(path string) (Host, bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Host{}, false
	}
	for _, h := range all {
		files, _ := h.Files() // none without a home directory
		for _, file := range files {
			if own, err := filepath.Abs(file); err == nil && (own == path || SameFile(own, path)) {
				return h, true
			}
		}
	}
	return Host{}, false
}

// SameFile reports whether two paths lead to one file.
func SameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// WhoseFile guesses from its name and content which host a file belongs to.
func WhoseFile(path string, data []byte) Host {
	root, err := (&syntax.Source{Name: path, Data: data}).Parse()
	if err != nil {
		root = &syntax.Node{Kind: syntax.Object}
		if syntax.IsTOML(path) {
			return named("codex") // which says that it is not TOML
		}
	}
	switch list := root.Get("mcpServers"); {
	case root.Get("mcp-servers") != nil:
		return named("gridctl")
	case root.Get("mcpProxy") != nil:
		return named("mcp-proxy")
	case list != nil && list.Kind == syntax.List && !syntax.IsYAML(path, data) && root.Get("contributes") == nil:
		return named("mcpproxy")
	}
	f := hostfile.Open(path, root, nil)
	if f.IsOwn() || f.Host == hostfile.Other && syntax.IsYAML(path, data) {
		return ownConfig
	}
	return of(f.Host)
}
