package hostfile

import "slices"

// A Host is a program with MCP servers in a file of its own.
type Host struct {
	// Name is the host's name on the command line, Title its full name.
	Name, Title string
	// Project are its files in a project's folder, User those of a user, which begin with ~, {config},
	// the system's folder for configs, or a variable: ${NAME} or ${NAME:-default}. A * stands for any
	// part of a name. The first is written, the others are only read.
	Project, User []string
	// Lists are the keys that lead to its servers, the ones that are written first.
	Lists [][]string
	// Exact is set if servers under the keys of other hosts are not read: the host starts none of them.
	Exact bool
	// Form is how dynmcp writes an entry there.
	Form Form
	// Variables are the references that the host replaces, besides those that all of them have.
	Variables Variables
	// Settings is set for a file that holds more than servers: none of its other keys are dynmcp's.
	Settings bool
	// Seconds is set if a timeout counts in seconds, Millis if it counts in milliseconds.
	Seconds, Millis bool
	// Off and On are the keys that lead to lists of the servers that are off, and of the only ones
	// that are on.
	Off, On []string
	// Keys are the meanings of keys that are not those of other hosts.
	Keys map[string]Meaning
}

// A Form is how a host writes a server that is a program.
type Form int

// The forms.
const (
	Plain    Form = iota // command and args
	Typed                // and the type stdio
	Copilot              // and the type local, and the tools that are shown
	Opencode             // the type local, and a command that is a list
	TOML                 // a table of TOML
	ReadOnly             // dynmcp reads it, and does not write it
)

// Variables are syntaxes of references. All hosts have ${NAME}, ${NAME:-default}, ${env:NAME},
// ${input:ID} and the folders of folders; what no host replaces stays text.
type Variables struct {
	Bare     bool // $NAME
	Braces   bool // {env:NAME}, empty if it is not set, and {file:PATH}
	Commands bool // $(COMMAND)
	Mustache bool // {{NAME}}
	Fixed    bool // none of the environment: ${NAME} is text
	Tilde    bool // ~ at the front of a command, an argument and a folder
}

// servers is the key of most hosts.
var servers = [][]string{{"mcpServers"}}

// All are the hosts. Of those whose files look the same the first is guessed.
var All = []*Host{
	{Name: "claude-code", Title: "Claude Code", Project: []string{".mcp.json", ".claude/settings.json", ".claude/settings.local.json"}, User: []string{"~/.claude.json"},
		Lists: servers, Form: Typed, Off: []string{"disabledMcpjsonServers", "disabledMcpServers"}},
	{Name: "claude-desktop", Title: "Claude Desktop", User: []string{"{config}/Claude/claude_desktop_config.json"}, Lists: servers},
	{Name: "cursor", Title: "Cursor", Project: []string{".cursor/mcp.json"}, User: []string{"~/.cursor/mcp.json"}, Lists: servers, Exact: true},
	{Name: "vscode", Title: "VS Code", Project: []string{".vscode/mcp.json", ".vscode/settings.json", "*.code-workspace"},
		User: []string{"{config}/Code/User/mcp.json"}, Lists: [][]string{{"servers"}, {"mcp", "servers"}, {"settings", "mcp", "servers"}},
		Form: Typed, Settings: true, Variables: Variables{Tilde: true}},
	{Name: "codex", Title: "Codex", Project: []string{".codex/config.toml"}, User: []string{"${CODEX_HOME:-~/.codex}/config.toml"},
		Lists: [][]string{{"mcp_servers"}}, Form: TOML, Settings: true, Seconds: true, Keys: map[string]Meaning{"tools": {Why: hostAsks}}},
	{Name: "gemini", Title: "Gemini CLI", Project: []string{".gemini/settings.json", "gemini-extension.json"}, User: []string{"~/.gemini/settings.json"},
		Lists: servers, Settings: true, Millis: true, Variables: Variables{Bare: true}, Off: []string{"mcp.excluded", "excludeMCPServers"}, On: []string{"mcp.allowed", "allowMCPServers"}},
	{Name: "opencode", Title: "opencode", Project: []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"},
		User:  []string{"${OPENCODE_CONFIG}", "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json", "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.jsonc"},
		Lists: [][]string{{"mcp"}, {"mcp", "servers"}}, Form: Opencode, Settings: true, Variables: Variables{Braces: true},
		Keys: map[string]Meaning{"timeout": {Why: silent}}}, // it is for listing tools, and too short for a call
	{Name: "zed", Title: "Zed", Project: []string{".zed/settings.json"}, User: []string{"{zed}/settings.json"},
		Lists: [][]string{{"context_servers"}}, Settings: true, Seconds: true},
	{Name: "windsurf", Title: "Windsurf", User: []string{"~/.codeium/windsurf/mcp_config.json"}, Lists: servers},
	{Name: "cline", Title: "Cline", User: []string{"${CLINE_MCP_SETTINGS_PATH}", "~/.cline/data/settings/cline_mcp_settings.json",
		"{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"}, Lists: servers, Exact: true, Seconds: true},
	{Name: "copilot", Title: "Copilot CLI", Project: []string{".github/mcp.json", ".github/copilot/mcp.json", ".copilot/mcp-config.json"},
		User: []string{"${COPILOT_HOME:-~/.copilot}/mcp-config.json"}, Lists: servers, Form: Copilot, Variables: Variables{Bare: true}},
	{Name: "lmstudio", Title: "LM Studio", User: []string{"~/.lmstudio/mcp.json"}, Lists: servers},
	{Name: "kiro", Title: "Kiro", Project: []string{".kiro/settings/mcp.json"}, User: []string{"~/.kiro/settings/mcp.json"}, Lists: [][]string{{"mcpServers"}, {"powers", "mcpServers"}}},
	{Name: "junie", Title: "JetBrains Junie", Project: []string{".junie/mcp/mcp.json"}, User: []string{"~/.junie/mcp/mcp.json"}, Lists: servers},
	{Name: "roo", Title: "Roo Code", Project: []string{".roo/mcp.json", ".kilocode/mcp.json"},
		User: []string{"{config}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"}, Lists: servers, Seconds: true},
	{Name: "continue", Title: "Continue", Project: []string{".continue/mcpServers/*.yaml", ".continue/config.yaml", ".continue/mcpServers/*.json"},
		User: []string{"~/.continue/config.yaml", "~/.continue/config.json"}, Form: ReadOnly, Settings: true,
		Lists: [][]string{{"mcpServers"}, {"experimental", "modelContextProtocolServers"}, {"experimental", "modelContextProtocolServer"}}},
	{Name: "amp", Title: "Amp", Project: []string{".amp/settings.json"}, User: []string{"~/.config/amp/settings.json"}, Lists: [][]string{{"amp.mcpServers"}, {"amp", "mcpServers"}}, Settings: true},
	{Name: "goose", Title: "goose", User: []string{"~/.config/goose/config.yaml"}, Lists: [][]string{{"extensions"}}, Form: ReadOnly, Settings: true, Seconds: true},
	{Name: "crush", Title: "Crush", Project: []string{"crush.json", ".crush.json"}, User: []string{"~/.config/crush/crush.json"}, Lists: [][]string{{"mcp"}},
		Form: Typed, Settings: true, Seconds: true, Variables: Variables{Bare: true, Commands: true}},
	{Name: "vibe", Title: "Mistral Vibe", Project: []string{".vibe/config.toml"}, User: []string{"~/.vibe/config.toml"}, Lists: [][]string{{"mcp_servers"}}, Form: ReadOnly, Settings: true, Seconds: true},
	{Name: "trae", Title: "Trae", Project: []string{".trae/mcp.json"}, Lists: servers},
	{Name: "factory", Title: "Factory", Project: []string{".factory/mcp.json"}, User: []string{"~/.factory/mcp.json"}, Lists: servers, Form: Typed},
	{Name: "amazonq", Title: "Amazon Q", Project: []string{".amazonq/mcp.json", ".amazonq/cli-agents/*.json", ".amazonq/agents/*.json", ".kiro/agents/*.json"},
		User: []string{"~/.aws/amazonq/mcp.json"}, Lists: servers, Settings: true, Millis: true},
	{Name: "qwen", Title: "Qwen Code", Project: []string{".qwen/settings.json", "qwen-extension.json"}, User: []string{"~/.qwen/settings.json"}, Lists: servers, Settings: true, Millis: true,
		Variables: Variables{Bare: true}, Off: []string{"mcp.excluded", "excludeMCPServers"}, On: []string{"mcp.allowed", "allowMCPServers"}},
	{Name: "jan", Title: "Jan", User: []string{"{config}/Jan/data/mcp_config.json", "~/jan/mcp_config.json"}, Lists: servers},
	{Name: "augment", Title: "Augment", User: []string{"~/.augment/settings.json"}, Lists: [][]string{{"mcpServers"}, {"augment.advanced", "mcpServers"}, {"advanced", "mcpServers"}}, Form: ReadOnly, Settings: true},
	{Name: "hermes", Title: "Hermes", User: []string{"~/.hermes/config.yaml"}, Lists: [][]string{{"mcp_servers"}}, Form: ReadOnly, Settings: true, Seconds: true},
	{Name: "openhands", Title: "OpenHands", User: []string{"~/.openhands/mcp.json", "~/.openhands/config.toml"},
		Lists: [][]string{{"mcpServers"}, {"mcp", "stdio_servers"}, {"mcp", "shttp_servers"}, {"mcp", "sse_servers"}}, Form: ReadOnly, Settings: true, Seconds: true},
	{Name: "librechat", Title: "LibreChat", Project: []string{"librechat.yaml"}, Lists: servers, Form: ReadOnly, Settings: true, Millis: true, Variables: Variables{Mustache: true},
		Keys: map[string]Meaning{"apiKey": {Why: "write it as a header"}}},
	{Name: "openclaw", Title: "OpenClaw", User: []string{"~/.openclaw/openclaw.json"}, Lists: [][]string{{"mcp", "servers"}}, Form: ReadOnly, Settings: true},
	{Name: "fast-agent", Title: "fast-agent", Project: []string{"fastagent.config.yaml", "mcp_agent.config.yaml"}, Lists: [][]string{{"mcp", "servers"}}, Form: ReadOnly, Settings: true},
	{Name: "devcontainer", Title: "Devcontainer", Project: []string{".devcontainer/devcontainer.json", ".devcontainer.json"}, Form: ReadOnly, Settings: true,
		Lists: [][]string{{"customizations", "vscode", "mcp", "servers"}, {"customizations", "vscode", "settings", "mcp", "servers"}}, Variables: Variables{Tilde: true}},
	{Name: "claude-plugin", Title: "Claude Code plugin", Project: []string{".claude-plugin/plugin.json"}, Lists: servers, Form: ReadOnly, Settings: true},
	{Name: "mcpb", Title: "MCP bundle", Form: ReadOnly, Settings: true, Variables: Variables{Fixed: true}},
	{Name: "registry", Title: "MCP registry", Form: ReadOnly, Settings: true},
	{Name: "smithery", Title: "Smithery", Project: []string{"smithery.yaml"}, Form: ReadOnly, Settings: true},
}

// Other is any other host with mcpServers in its file, or servers by name.
var Other = &Host{Name: "other", Title: "Another host", Lists: [][]string{{"mcpServers"}, {"servers"}}, Form: ReadOnly}

// Named returns the host called name, or nil.
func Named(name string) *Host {
	if i := slices.IndexFunc(All, func(h *Host) bool { return h.Name == name }); i >= 0 {
		return All[i]
	}
	return nil
}
