package aggregator

import (
	"encoding/json"
	"strings"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/schema"
)

// A hostProfile is how one host differs from others in what it does with us.
type hostProfile struct {
	client string // its clientInfo.name begins with this, in lower case
	// startupWait is how long its first list waits for servers that are starting.
	startupWait time.Duration
	// freezes says that it keeps the first list of tools, or caches its requests to the
	// model by it.
	freezes bool
	// searches says that it searches tools by itself, and shows the model only those that
	// it finds: where the config leaves it to us, it is shown every tool.
	searches bool
}

// hostProfiles are the hosts that are known, by what the config's key host calls them.
// docs/config.md has the same table.
var hostProfiles = map[string]*hostProfile{
	// It keeps the first definitions for all its model requests, whatever it is told of
	// changes (2.1.330): what has not started by then stays unnamed. Tools of servers are
	// deferred behind its tool search.
	schema.HostClaudeCode: {client: "claude-code", startupWait: 5 * time.Second, freezes: true, searches: true},
	// Its first turn goes to the model a second after the start, without the tools of
	// servers that have not answered, and it never lists again (0.169).
	schema.HostCodex: {client: "codex", startupWait: 500 * time.Millisecond, freezes: true},
	// These list again when they are told to (0.61, 1.18).
	schema.HostGeminiCLI: {client: "gemini-cli", startupWait: 2 * time.Second},
	schema.HostOpencode:  {client: "opencode", startupWait: 2 * time.Second},

	schema.HostClaudeDesktop: {client: "claude-ai", startupWait: 2 * time.Second},
	schema.HostCursor:        {client: "cursor", startupWait: 2 * time.Second},
	schema.HostVSCode:        {client: "visual studio code", startupWait: 2 * time.Second},
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

// profileOf returns the profile of a session's host: the one that the config names, or
// that of its own name, as far as it has said it.
func (a *Aggregator) profileOf(s *session) *hostProfile {
	if named := a.config().Host; named != "" {
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
func (a *Aggregator) startupWait(s *session) time.Duration {
	p := a.profileOf(s)
	if p.searches && a.state.Load().auto {
		return a.config().StartupWaitOr(schema.DirectWait)
	}
	return a.config().StartupWaitOr(p.startupWait)
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
