package sessions

import (
	"cmp"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
)

// A Profile is how one host differs from others in what it does with us.
type Profile struct {
	client string // its clientInfo.name begins with this, in lower case
	// StartupWait is how long a request waits for servers that are starting, from when they
	// were started.
	StartupWait time.Duration
	// Freezes says that it keeps the first list of tools, or caches its requests to the
	// model by it.
	Freezes bool
	// Searches says that it searches tools by itself, and shows the model only those that
	// it finds: where the config leaves it to us, it is shown every tool.
	Searches bool
	// AsksByTool says that it asks its user by the name of a tool, whom it remembers, or makes
	// less of calls of a tool that says it only reads: where the config leaves it to us,
	// use_tool is split for it.
	AsksByTool bool
	// maxName is how long the names of tools may be for it, 0 is MaxDirect, of which it
	// puts prefix in front: where its config calls us dynmcp, as install does. What it does
	// with longer ones differs: it loses the tool, or all of them, or cuts the names.
	maxName int
	prefix  string
}

// Longest is how long the names of tools may be that a host is shown.
func (p *Profile) Longest() int {
	return cmp.Or(p.maxName, catalog.MaxDirect) - len(p.prefix)
}

// hostProfiles are the hosts that are known, by what the config's key host calls them.
// docs/config.md has the same table.
var hostProfiles = map[string]*Profile{
	// It keeps the first definitions for all its model requests, whatever it is told of
	// changes (2.1.330): what has not started by then stays unnamed. A server that its user
	// or project has gets 1.9 s from the start of Claude Code, of which 0.4 s pass before the
	// first request; with --mcp-config it waits for all, which only its user knows. Tools of
	// servers are deferred behind its tool search. With a longer name every request to the
	// model fails (anthropics/claude-code#2326, #19882).
	schema.HostClaudeCode: {client: "claude-code", StartupWait: 1200 * time.Millisecond, Freezes: true, Searches: true, AsksByTool: true, prefix: "mcp__dynmcp__"},
	// Its first turn goes to the model a second after the start, without the tools of
	// servers that have not answered, and it never lists again (0.169). It replaces the end
	// of longer names by a hash.
	schema.HostCodex: {client: "codex", StartupWait: 500 * time.Millisecond, Freezes: true, prefix: "mcp__dynmcp__"},
	// These list again when they are told to (0.61, 1.18). Gemini CLI cuts the middle out of
	// longer names, which may make two into one.
	schema.HostGeminiCLI: {client: "gemini-cli", StartupWait: 2 * time.Second, maxName: 63, prefix: "mcp_dynmcp_"},
	schema.HostOpencode:  {client: "opencode", StartupWait: 2 * time.Second, prefix: "dynmcp_"},
	// The names of server and tool together (sparfenyuk/mcp-proxy#45).
	schema.HostClaudeDesktop: {client: "claude-ai", StartupWait: 2 * time.Second, prefix: "dynmcp:", AsksByTool: true},
	// It leaves out a tool whose name has 60 characters with that of its server
	// (ComposioHQ/composio#2788).
	schema.HostCursor: {client: "cursor", StartupWait: 2 * time.Second, maxName: 59, prefix: "dynmcp"},
	// It cuts longer names off (microsoft/vscode#243602).
	schema.HostVSCode: {client: "visual studio code", StartupWait: 2 * time.Second, AsksByTool: true, prefix: "mcp_dynmcp_"},
}

// anyHost is the profile of all others.
var anyHost = &Profile{StartupWait: 2 * time.Second}

// profileNamed returns the profile of a host by the name that it gives itself.
func profileNamed(client string) *Profile {
	client = strings.ToLower(client)
	for _, p := range hostProfiles {
		if strings.HasPrefix(client, p.client) {
			return p
		}
	}
	return anyHost
}

// ProfileOf returns the profile of the host that the config names so.
func ProfileOf(named string) *Profile {
	if p, ok := hostProfiles[named]; ok {
		return p
	}
	return anyHost
}
