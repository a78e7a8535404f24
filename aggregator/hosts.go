package aggregator

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
)

// A hostProfile is how one host differs from others in what it does with us.
type hostProfile struct {
	client string // its clientInfo.name begins with this, in lower case
	// startupWait is how long a request waits for servers that are starting, from when they
	// were started.
	startupWait time.Duration
	// freezes says that it keeps the first list of tools, or caches its requests to the
	// model by it.
	freezes bool
	// searches says that it searches tools by itself, and shows the model only those that
	// it finds: where the config leaves it to us, it is shown every tool.
	searches bool
	// maxName is how long the names of tools may be for it, 0 is MaxDirect, of which it
	// puts prefix in front: where its config calls us dynmcp, as install does. What it does
	// with longer ones differs: it loses the tool, or all of them, or cuts the names.
	maxName int
	prefix  string
}

// longest is how long the names of tools may be that a host is shown.
func (p *hostProfile) longest() int {
	return cmp.Or(p.maxName, catalog.MaxDirect) - len(p.prefix)
}

// hostProfiles are the hosts that are known, by what the config's key host calls them.
// docs/config.md has the same table.
var hostProfiles = map[string]*hostProfile{
	// It keeps the first definitions for all its model requests, whatever it is told of
	// changes (2.1.330): what has not started by then stays unnamed. A server that its user
	// or project has gets 1.9 s from the start of Claude Code, of which 0.4 s pass before the
	// first request; with --mcp-config it waits for all, which only its user knows. Tools of
	// servers are deferred behind its tool search. With a longer name every request to the
	// model fails (anthropics/claude-code#2326, #19882).
	schema.HostClaudeCode: {client: "claude-code", startupWait: 1200 * time.Millisecond, freezes: true, searches: true, prefix: "mcp__dynmcp__"},
	// Its first turn goes to the model a second after the start, without the tools of
	// servers that have not answered, and it never lists again (0.169). It replaces the end
	// of longer names by a hash.
	schema.HostCodex: {client: "codex", startupWait: 500 * time.Millisecond, freezes: true, prefix: "mcp__dynmcp__"},
	// These list again when they are told to (0.61, 1.18). Gemini CLI cuts the middle out of
	// longer names, which may make two into one.
	schema.HostGeminiCLI: {client: "gemini-cli", startupWait: 2 * time.Second, maxName: 63, prefix: "mcp_dynmcp_"},
	schema.HostOpencode:  {client: "opencode", startupWait: 2 * time.Second, prefix: "dynmcp_"},
	// The names of server and tool together (sparfenyuk/mcp-proxy#45).
	schema.HostClaudeDesktop: {client: "claude-ai", startupWait: 2 * time.Second, prefix: "dynmcp:"},
	// It leaves out a tool whose name has 60 characters with that of its server
	// (ComposioHQ/composio#2788).
	schema.HostCursor: {client: "cursor", startupWait: 2 * time.Second, maxName: 59, prefix: "dynmcp"},
	// It cuts longer names off (microsoft/vscode#243602).
	schema.HostVSCode: {client: "visual studio code", startupWait: 2 * time.Second, prefix: "mcp_dynmcp_"},
}

// anyHost is the profile of all others.
var anyHost = &hostProfile{startupWait: 2 * time.Second}

// profileNamed returns the profile of a host by the name that it gives itself.
func profileNamed(client string) *hostProfile {
	client = strings.ToLower(client)
	for _, p := range hostProfiles {
		if strings.HasPrefix(client, p.client) {
			return p
		}
	}
	return anyHost
}

// hostProfile returns the profile of a session's host: the one that the config names, or
// that of its own name, as far as it has said it.
func (s *session) hostProfile() *hostProfile {
	if named := s.agg.config().Host; named != "" {
		if p, ok := hostProfiles[named]; ok {
			return p
		}
		return anyHost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.profile == nil {
		return anyHost
	}
	return s.profile
}

// startupWait is how long a request of a session waits for servers that are starting:
// what the config says or else what suits the host.
func (s *session) startupWait() time.Duration {
	p := s.hostProfile()
	if p.searches && s.agg.state.Load().auto() {
		return s.agg.config().StartupWaitOr(schema.DirectWait)
	}
	return s.agg.config().StartupWaitOr(p.startupWait)
}

// introduce keeps the name, a JSON string or nil, that a host gives itself in the
// handshake, or in the stateless era in a request.
func (s *session) introduce(client json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if client == nil || wire.EqualString(client, s.client) {
		return
	}
	s.client, _ = wire.Text(client)
	s.profile = profileNamed(s.client)
}
