package sessions

import (
	"cmp"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/catalog/directname"
	"github.com/dynmcp/dynmcp/schema"
)

// A Profile describes how a host differs from others.
type Profile struct {
	client string // prefix of its clientInfo.name, in lower case
	// StartupWait is how long a list waits for servers that are starting, from the time of
	// their start, on every surface: what the host waits itself before its first request.
	StartupWait time.Duration
	// Freezes is true if the host keeps the first list of tools, or caches its requests to
	// the model by it.
	Freezes bool
	// Searches is true if the host searches tools itself, and shows the model only those that
	// it finds. With "auto" in the config it is shown every tool.
	Searches bool
	// AsksByTool is true if the host asks its user about each tool by name and remembers the
	// answer, or asks less about a tool that only reads. With "auto" in the config use_tool is
	// split for it.
	AsksByTool bool
	// maxName is the longest name of a tool for the host, including prefix, which the host
	// adds if its config calls the server dynmcp, as install does; 0 is directname.Max. With longer
	// names hosts lose the tool or all tools, or cut the names.
	maxName int
	prefix  string
	// ReadsData is true if the host shows its model only the texts of results, or has no model. Then
	// load_mcp adds its listing as structured content, which other hosts show in place of the text.
	ReadsData bool
	// AnswersRoots is true if the host answers roots/list without declaring roots.
	AnswersRoots bool
}

// Longest returns the longest name of a tool that the host may be shown.
func (p *Profile) Longest() int {
	return cmp.Or(p.maxName, directname.Max) - len(p.prefix)
}

// hostProfiles are the known hosts, by their names in the config's key "host".
// docs/hosts.md has the same table.
var hostProfiles = map[string]*Profile{
	// It keeps the first definitions for all requests to the model, despite notifications of
	// changes (2.1.330): a server that has not started by then is not named. A server of the
	// user or project has 1.9 s from the start of Claude Code, of which 0.4 s pass before the
	// first request; with --mcp-config it waits for all, which cannot be detected. Tools of
	// servers are deferred behind its tool search. With a longer name every request to the
	// model fails (anthropics/claude-code#2326, #19882).
	schema.HostClaudeCode: {client: "claude-code", StartupWait: 1200 * time.Millisecond, Freezes: true, Searches: true, AsksByTool: true, prefix: "mcp__dynmcp__"},
	// It sends the first turn to the model a second after the start, without the tools of
	// servers that have not answered, and never lists again (0.169). It replaces the end
	// of longer names by a hash.
	schema.HostCodex: {client: "codex", StartupWait: 500 * time.Millisecond, Freezes: true, prefix: "mcp__dynmcp__", AnswersRoots: true},
	// These list again after a notification (0.61, 1.18). Gemini CLI reads only contents, and cuts the middle out of
	// longer names, so two tools may get the same name.
	schema.HostGeminiCLI: {client: "gemini-cli", StartupWait: 2 * time.Second, maxName: 63, prefix: "mcp_dynmcp_", ReadsData: true},
	schema.HostOpencode:  {client: "opencode", StartupWait: 2 * time.Second, prefix: "dynmcp_"},
	// It starts after all servers have answered, and lists again (1.0.102).
	schema.HostCopilot: {client: "copilot-cli", StartupWait: 2 * time.Second, AnswersRoots: true},
	// Its limit is for the names of server and tool together (sparfenyuk/mcp-proxy#45).
	schema.HostClaudeDesktop: {client: "claude-ai", StartupWait: 2 * time.Second, prefix: "dynmcp:", AsksByTool: true},
	// It omits a tool if the names of server and tool together have 60 characters
	// (ComposioHQ/composio#2788).
	schema.HostCursor: {client: "cursor", StartupWait: 2 * time.Second, maxName: 59, prefix: "dynmcp"},
	// It cuts longer names off (microsoft/vscode#243602).
	schema.HostVSCode:  {client: "visual studio code", StartupWait: 2 * time.Second, AsksByTool: true, prefix: "mcp_dynmcp_"},
	schema.HostProgram: {client: "program", StartupWait: 2 * time.Second, ReadsData: true},
}

// defaultProfile is the profile of all other hosts. Some wait little for servers before their
// first request to the model; they list again after a notification. Droid waits only with its
// setting blockOnMcpLoad (0.215): without it, it misses even a server that answers at once.
var defaultProfile = &Profile{StartupWait: 150 * time.Millisecond}

// profileOfClient returns the profile of a host with this clientInfo.name.
func profileOfClient(client string) *Profile {
	client = strings.ToLower(client)
	for _, p := range hostProfiles {
		if strings.HasPrefix(client, p.client) {
			return p
		}
	}
	return defaultProfile
}

// ProfileOf returns the profile of a host by its name in the config.
func ProfileOf(named string) *Profile {
	return cmp.Or(hostProfiles[named], defaultProfile)
}
