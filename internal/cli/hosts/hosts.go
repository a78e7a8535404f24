// Package hosts reads and edits the config files of MCP hosts (Claude Code, Cursor, Codex
// and others).
//
// Reading translates the servers into entries of dynmcp's config, with notes on what could
// not be taken over. Editing sets or removes one server and keeps every other byte of the
// file; it works on text, and the caller writes the file.
package hosts

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A Host is a program with MCP servers in its own config.
type Host struct {
	// Name is the host's name on the command line; Title is its full name.
	Name, Title string
	// Project is the host's file in a project's directory, empty if it has none.
	Project string

	key  string   // the member of the config that holds the servers
	more []string // further files of a project, which are only read
	form form     // how an entry is written

	rewrite func(*rewriting) // translates an entry of an aggregator into one of a host

	// user returns the user's files, nil for none. The first that exists is edited; if none
	// exists, the first is created.
	user func(home, config string) []string
}

// A form is how a host writes a server that is a program.
type form int

const (
	plain    form = iota // command and args
	typed                // and the type stdio
	copilot              // and the type local, and the tools that are shown
	opencode             // the type local, and a command that is a list
	inTOML               // a table of TOML
	ours                 // the form of dynmcp's config, or one that dynmcp reads; read-only
	foreign              // the form of another aggregator; read-only
)

// isTOML reports whether the host's config is TOML.
func (h Host) isTOML() bool { return h.form == inTOML }

var all = []Host{
	{Name: "claude-code", Title: "Claude Code", Project: ".mcp.json", key: "mcpServers", form: typed,
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".claude.json")} }},
	{Name: "claude-desktop", Title: "Claude Desktop", key: "mcpServers",
		user: func(_, config string) []string {
			return []string{filepath.Join(config, "Claude", "claude_desktop_config.json")}
		}},
	{Name: "cursor", Title: "Cursor", Project: ".cursor/mcp.json", key: "mcpServers",
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".cursor", "mcp.json")} }},
	{Name: "vscode", Title: "VS Code", Project: ".vscode/mcp.json", key: "servers", form: typed,
		user: func(_, config string) []string { return []string{filepath.Join(config, "Code", "User", "mcp.json")} }},
	{Name: "codex", Title: "Codex", Project: ".codex/config.toml", key: "mcp_servers", form: inTOML,
		user: func(home, _ string) []string {
			return []string{filepath.Join(cmp.Or(os.Getenv("CODEX_HOME"), filepath.Join(home, ".codex")), "config.toml")}
		}},
	{Name: "gemini", Title: "Gemini CLI", Project: ".gemini/settings.json", key: "mcpServers",
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".gemini", "settings.json")} }},
	{Name: "opencode", Title: "opencode", Project: "opencode.json", more: []string{"opencode.jsonc", ".opencode/opencode.json"}, key: "mcp", form: opencode,
		user: func(home, _ string) []string {
			dir := filepath.Join(home, ".config", "opencode")
			if config := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(config) {
				dir = filepath.Join(config, "opencode")
			}
			files := []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc")}
			if named := os.Getenv("OPENCODE_CONFIG"); named != "" {
				files = append([]string{named}, files...)
			}
			return files
		}},
	{Name: "zed", Title: "Zed", Project: ".zed/settings.json", key: "context_servers",
		user: func(home, config string) []string {
			if runtime.GOOS == "windows" {
				return []string{filepath.Join(config, "Zed", "settings.json")}
			}
			if runtime.GOOS == "darwin" {
				config = filepath.Join(home, ".config")
			}
			return []string{filepath.Join(config, "zed", "settings.json")}
		}},
	{Name: "windsurf", Title: "Windsurf", key: "mcpServers",
		user: func(home, _ string) []string {
			return []string{filepath.Join(home, ".codeium", "windsurf", "mcp_config.json")}
		}},
	{Name: "cline", Title: "Cline", key: "mcpServers",
		user: func(home, config string) []string {
			files := []string{ // older versions of the extension read the second
				filepath.Join(home, ".cline", "data", "settings", "cline_mcp_settings.json"),
				filepath.Join(config, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json"),
			}
			if named := os.Getenv("CLINE_MCP_SETTINGS_PATH"); named != "" {
				files = append([]string{named}, files...)
			}
			return files
		}},
	{Name: "copilot", Title: "Copilot CLI", Project: ".github/mcp.json", key: "mcpServers", form: copilot,
		user: func(home, _ string) []string {
			return []string{filepath.Join(cmp.Or(os.Getenv("COPILOT_HOME"), filepath.Join(home, ".copilot")), "mcp-config.json")}
		}},
	{Name: "lmstudio", Title: "LM Studio", key: "mcpServers",
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".lmstudio", "mcp.json")} }},
	{Name: "kiro", Title: "Kiro", Project: ".kiro/settings/mcp.json", key: "mcpServers",
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".kiro", "settings", "mcp.json")} }},
	{Name: "junie", Title: "JetBrains Junie", Project: ".junie/mcp/mcp.json", key: "mcpServers",
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".junie", "mcp", "mcp.json")} }},
	{Name: "mcp-browser", Title: "MCP Browser", Project: ".mcp-browser/config.yaml", form: ours,
		user: func(home, _ string) []string { return []string{filepath.Join(home, ".mcp-browser", "config.yaml")} }},
}

// ownConfig is the host of a config of dynmcp.
var ownConfig = Host{Title: "dynmcp", form: ours}

// IsHost reports whether dynmcp can be put into h. The servers of other programs are only
// read.
func (h Host) IsHost() bool { return h.form != ours && h.form != foreign }

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
		return Host{}, hint.With(fmt.Errorf("unknown host %q", name), "use %s", strings.Join(among, ", "))
	}
	return named(name), nil
}

// UserFile returns the path of the user's file: the first that exists, or else the first.
func (h Host) UserFile() (string, error) {
	files, err := h.userFiles()
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
	files, err := h.userFiles()
	if err != nil || h.Name != "cline" {
		return nil
	}
	return slices.DeleteFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return err != nil || SameFile(file, path)
	})
}

// userFiles returns the paths of the user's files. Desktop programs use the system's
// directory for configs; programs made for a shell do not.
func (h Host) userFiles() ([]string, error) {
	home, err := os.UserHomeDir()
	if err != nil || h.user == nil {
		return nil, err
	}
	config := filepath.Join(home, ".config")
	switch runtime.GOOS {
	case "darwin":
		config = filepath.Join(home, "Library", "Application Support")
	case "windows":
		config = os.Getenv("APPDATA")
	default:
		if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
			config = dir
		}
	}
	return h.user(home, config), nil
}

// Files returns the paths of all files in which the host may have servers, the project's
// first.
func (h Host) Files() ([]string, error) {
	user, err := h.userFiles()
	if err != nil {
		return nil, err
	}
	var files []string
	if h.Project != "" {
		for _, path := range append([]string{h.Project}, h.more...) {
			files = append(files, filepath.FromSlash(path))
		}
	}
	return append(files, user...), nil
}

// InDirectory returns the first host or other program with a file in the working directory, and the file,
// "" if there is none.
func InDirectory() (h Host, file string) {
	for _, h := range slices.Concat(all, programs) {
		for _, path := range append([]string{h.Project}, h.more...) {
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

// isOpencode reports whether the mcp member of a file has the form of opencode.
func isOpencode(path string, data []byte) bool {
	raw, _ := syntax.GetJSON(path, data, []string{"mcp"}) // compact
	return slices.ContainsFunc([]string{`"type":"local"`, `"type":"remote"`, `"servers":{`}, func(part string) bool { return bytes.Contains(raw, []byte(part)) })
}

// isPlace reports whether a path ends as one of the host's files, of a project or a user.
func (h Host) isPlace(path string) bool {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	return slices.ContainsFunc(append(h.user("", ""), filepath.FromSlash(h.Project)), func(file string) bool {
		return file != "" && strings.HasSuffix(path, string(filepath.Separator)+file)
	})
}

// WhoseFile guesses from its name and content which host a file belongs to.
func WhoseFile(path string, data []byte) Host {
	name := "claude-desktop"
	has := func(keys ...string) bool {
		value, err := syntax.GetJSON(path, data, keys)
		return err == nil && len(value) > 0 && value[0] == '{'
	}
	placed := ""
	for _, h := range all {
		if h.key != "" && h.key != "mcp" && has(h.key) && h.isPlace(path) {
			placed = h.Name
		}
	}
	root, _ := (&syntax.Source{Name: path, Data: data}).Parse() // nil for TOML
	switch {
	case filepath.Ext(path) == ".toml":
		name = "codex"
	case root.Get("mcp-servers") != nil:
		name = "gridctl"
	case root.Get("mcpProxy") != nil:
		name = "mcp-proxy"
	case root.ItemsOf("mcpServers") != nil:
		name = "mcpproxy"
	case syntax.IsYAML(path, data):
		return ownConfig
	case placed != "":
		name = placed
	case has("context_servers"):
		name = "zed"
	case has("mcpServers") && filepath.Base(path) == "settings.json":
		name = "gemini"
	case has("mcpServers"):
	case has("mcp") && !isOpencode(path, data):
		return ownConfig
	case has("mcp"):
		name = "opencode"
	case has("servers"):
		name = "vscode"
	}
	return named(name)
}
