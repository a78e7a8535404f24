package hostfile

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/lazyregexp"
	"github.com/dynmcp/dynmcp/schema/syntax"
)

// A File is a document of a host.
type File struct {
	// Host is Other for a config of dynmcp.
	Host *Host
	// Dir is the folder of its project; Project says that it is a project's file by its place.
	Dir     string
	Project bool

	root     *syntax.Node
	defaults map[string]*syntax.Node // of settings of Smithery, by its commandFunction

	own bool // a config of dynmcp, in which mcpServers and servers are as hosts write them
}

// Open returns the file at path with the document root, which is that of h, or of the host that its
// place and content say.
func Open(path string, root *syntax.Node, h *Host) *File {
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	f := &File{Host: h, Dir: filepath.Dir(path), root: root}
	placed, dir, project := atPlace(path, root)
	if h == nil || h == placed {
		f.Project = project
		switch {
		case placed != nil && dir != "":
			f.Dir = dir
		case placed != nil: // of the user
			f.Dir, _ = os.Getwd()
		}
		f.Host = placed
	}
	if f.Host == nil {
		f.Host = byContent(path, root)
	}
	if f.own = f.Host == nil; f.own {
		f.Host = Other
	}
	return f
}

var patternRoot = lazyregexp.New(`^(?:~|\{[a-z]+\}|\$\{[^}]*\})/?`)

// atPlace returns the host at one of whose places a file is, and the folder of the project, "" for a
// file of a user.
func atPlace(file string, root *syntax.Node) (h *Host, dir string, project bool) {
	slashed := filepath.ToSlash(file)
	for _, h := range All {
		if files, err := h.UserFiles(); err == nil && slices.Contains(files, file) && h.owns(file, root) {
			return h, "", false
		}
	}
	for _, h := range All {
		for _, pattern := range h.Project {
			if front, ok := cutPlace(slashed, pattern); ok && h.owns(file, root) {
				return h, filepath.FromSlash(front), !isHome(front)
			}
		}
		for _, pattern := range h.User {
			if rest := patternRoot().ReplaceAllString(pattern, ""); rest != "" {
				if _, ok := cutPlace(slashed, rest); ok && strings.ContainsAny(rest, "/.") && h.owns(file, root) && !slices.Contains([]string{"config.toml", "config.yaml", "mcp.json", "settings.json"}, rest) {
					return h, "", false
				}
			}
		}
	}
	if h := Named(names[filepath.Base(file)]); h != nil && h.owns(file, root) {
		return h, "", false
	}
	return nil, "", false
}

// names are the names of files that only one host has, wherever a copy is.
var names = map[string]string{"claude_desktop_config.json": "claude-desktop", "cline_mcp_settings.json": "cline", "mcp_settings.json": "roo"}

// isHome reports whether a folder is the user's: what is there is no project's.
func isHome(dir string) bool {
	home, err := os.UserHomeDir()
	return err == nil && filepath.Clean(filepath.FromSlash(dir)) == filepath.Clean(home)
}

// cutPlace cuts the pattern of a place from the end of a path.
func cutPlace(file, pattern string) (front string, ok bool) {
	parts, want := strings.Split(file, "/"), strings.Split(pattern, "/")
	at := len(parts) - len(want)
	if at < 0 {
		return "", false
	}
	for i, w := range want {
		if ok, _ := path.Match(w, parts[at+i]); !ok {
			return "", false
		}
	}
	return strings.Join(parts[:at], "/") + map[bool]string{true: "/"}[at <= 1], true
}

// owns reports whether a document at a place of the host is the host's: a config of dynmcp may be
// there, too.
func (h *Host) owns(path string, root *syntax.Node) bool {
	return root == nil || !isOwn(path, root) || h.Name == "crush" || h.Name == "opencode"
}

// isOwn reports whether a document has servers as dynmcp's configs have them.
func isOwn(path string, root *syntax.Node) bool {
	mcp := root.Get("mcp")
	switch {
	case root.Kind != syntax.Object || root.Has("tree"):
		return true
	case mcp == nil:
		return false
	case isCrush(root):
		return false
	case root.Has("mcpServers") && (mcp.Kind != syntax.Object || slices.ContainsFunc(mcp.Members, func(m syntax.Member) bool { return m.Value.Kind != syntax.Object })):
		return false
	case mcp.Kind != syntax.Object:
		return true
	}
	return !(isOpencode(mcp) || isChoice(mcp) || isList(mcp.Get("servers")) && !looksLikeEntry(mcp.Get("servers")) || isList(mcp.Get("mcpServers")) && !looksLikeEntry(mcp.Get("mcpServers")) || mcp.Has("stdio_servers") || mcp.Has("sse_servers") || mcp.Has("shttp_servers"))
}

func isCrush(root *syntax.Node) bool { return strings.Contains(scalar(root.Get("$schema")), "crush") }

// isOpencode reports whether the entries of an object are written as opencode writes them.
func isOpencode(n *syntax.Node) bool {
	return slices.ContainsFunc(n.Members, func(m syntax.Member) bool {
		kind := scalar(m.Value.Get("type"))
		return kind == "local" || kind == "remote"
	})
}

// isChoice reports whether an object is the mcp of Gemini CLI, which selects servers.
func isChoice(n *syntax.Node) bool {
	return len(n.Members) > 0 && !slices.ContainsFunc(n.Members, func(m syntax.Member) bool {
		return m.Key != "serverCommand" && m.Value.Kind != syntax.List || !slices.Contains([]string{"allowed", "excluded", "serverCommand"}, m.Key)
	})
}

// reaching are the keys of which an entry has at least one.
var reaching = []string{"command", "url", "httpUrl", "serverUrl", "cmd", "uri", "baseUrl", "server_url"}

// byContent returns the host whose servers a document has, nil for dynmcp and for what has none.
func byContent(path string, root *syntax.Node) *Host {
	has := func(keys ...string) bool { return isList(below(root, keys)) }
	yaml, toml := syntax.IsYAML(path, []byte("x")), syntax.IsTOML(path)
	named, schema := strings.ToLower(filepath.Base(path)), scalar(root.Get("$schema"))
	mcp := root.Get("mcp")
	if root.Kind == syntax.Object && (isOwn(path, root)) {
		return nil
	}
	for _, guess := range []struct {
		is   bool
		name string
	}{
		{has("server", "mcp_config"), "mcpb"},
		{has("packages") && root.Has("name") && !root.Has("mcpServers") || has("remotes") && root.Has("name") || strings.HasSuffix(schema, "/server.schema.json"), "registry"},
		{has("startCommand") || named == "smithery.yaml", "smithery"},
		{has("context_servers") && !root.Has("mcpServers"), "zed"},
		{has("amp.mcpServers"), "amp"},
		{has("customizations", "vscode"), "devcontainer"},
		{has("augment.advanced", "mcpServers"), "augment"},
		{has("experimental", "modelContextProtocolServers"), "continue"},
		{has("mcp_servers") && toml && root.Get("mcp_servers").Kind == syntax.Object, "codex"},
		{has("mcp_servers") && toml, "vibe"},
		{has("mcp_servers"), "hermes"},
		{toml && mcp != nil, "openhands"},
		{isGoose(root.Get("extensions")), "goose"},
		{isCrush(root), "crush"},
		{mcp != nil && isOpencode(mcp) || has("mcp", "servers") && isOpencode(mcp.Get("servers")), "opencode"},
		{has("mcp", "servers") && strings.Contains(named, "openclaw"), "openclaw"},
		{has("mcp", "servers") && yaml, "fast-agent"},
		{has("mcp", "servers") || has("settings", "mcp", "servers"), "vscode"},
		{mcp != nil && mcp.Kind == syntax.Object && !has("mcpServers") && !isChoice(mcp) && !has("mcp", "mcpServers"), "openhands"},
		{has("mcpServers") && root.Has("endpoints"), "librechat"},
		{has("mcpServers") && yaml && root.Get("mcpServers").Kind == syntax.List, "continue"},
		{named == "plugin.json" && root.Has("name"), "claude-plugin"},
		{has("mcpServers") && strings.Contains(schema, "qwen"), "qwen"},
		{has("mcpServers") && (named == "settings.json" || isGemini(root)), "gemini"},
		{has("servers") && !yaml && !has("mcpServers"), "vscode"},
	} {
		if guess.is {
			return Named(guess.name)
		}
	}
	if has("mcpServers") || has("servers") || has("mcp", "mcpServers") || has("mcp.servers") || isBare(root) {
		return Other
	}
	return nil
}

// isGemini reports whether a document is Gemini CLI's, where $NAME is a reference.
func isGemini(root *syntax.Node) bool {
	return slices.ContainsFunc([]string{"selectedAuthType", "general", "security", "theme"}, root.Has) || slices.ContainsFunc(root.MembersOf("mcpServers"), func(m syntax.Member) bool {
		return slices.ContainsFunc([]string{"httpUrl", "trust", "includeTools", "excludeTools"}, m.Value.Has)
	})
}

func isGoose(n *syntax.Node) bool {
	return n != nil && n.Kind == syntax.Object && slices.ContainsFunc(n.Members, func(m syntax.Member) bool {
		return m.Value.Has("cmd") || m.Value.Has("uri") || m.Value.Has("type") && m.Value.Has("enabled")
	})
}

// lists returns the keys of all objects and lists that hold servers; nil keys are the document.
func (f *File) lists() [][]string {
	find := func(among [][]string) (found [][]string) {
		for _, keys := range among {
			if n := below(f.root, keys); isList(n) && !(len(keys) == 1 && keys[0] == "mcp" && f.Host != Named("crush") && isList(n.Get("servers")) && !looksLikeEntry(n.Get("servers"))) {
				found = append(found, keys)
			}
		}
		return found
	}
	found := find(f.Host.Lists)
	if f.Host.Name == "claude-code" {
		dir, _ := os.Getwd()
		own := []string{"projects", dir, "mcpServers"}
		if isList(below(f.root, own)) {
			found = append([][]string{own}, found...)
		}
	}
	if len(found) == 0 && !f.own && !f.Host.Exact {
		found = find([][]string{{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"mcp", "mcpServers"}, {"mcp.servers"}, {"mcp_servers"}, {"context_servers"}})
	}
	if len(found) == 0 && !f.own && !f.Host.Exact && !f.Host.special() && isBare(f.root) {
		return [][]string{nil}
	}
	return found
}
