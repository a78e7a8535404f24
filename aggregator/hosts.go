package aggregator

import (
	"strings"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// A hostProfile is how one host differs from others in what it does with us.
type hostProfile struct {
	client string // its clientInfo.name begins with this, in lower case
	// startupWait is how long its first list waits for servers that are starting.
	startupWait time.Duration
	// freezes says that it keeps the first list of tools, or caches its requests to the
	// model by it.
	freezes bool
}

// hostProfiles are the hosts that are known, by what the config's key host calls them.
// docs/config.md has the same table.
var hostProfiles = map[string]hostProfile{
	// It keeps the first definitions for all its model requests, whatever it is told of
	// changes (2.1.330): what has not started by then stays unnamed.
	schema.HostClaudeCode: {"claude-code", 5 * time.Second, true},
	// Its first turn goes to the model a second after the start, without the tools of
	// servers that have not answered, and it never lists again (0.169).
	schema.HostCodex: {"codex", 500 * time.Millisecond, true},
	// These list again when they are told to (0.61, 1.18).
	schema.HostGeminiCLI: {"gemini-cli", 2 * time.Second, false},
	schema.HostOpencode:  {"opencode", 2 * time.Second, false},
}

// anyHost is the profile of all others.
var anyHost = hostProfile{startupWait: 2 * time.Second}

// profileOf returns the profile of a session's host, which made this request: the one
// that the config names, or that of its own name.
func (a *Aggregator) profileOf(s *session, r *host.Request) hostProfile {
	if named := a.config().Host; named != "" {
		if p, ok := hostProfiles[named]; ok {
			return p
		}
		return anyHost
	}
	client := s.clientName()
	if client == "" { // in the stateless era each request says it
		client, _ = wire.Text(wire.Get(r.Meta, transports.MetaClientInfo, "name"))
	}
	for _, p := range hostProfiles {
		if strings.HasPrefix(strings.ToLower(client), p.client) {
			return p
		}
	}
	return anyHost
}

// startupWait is how long a request of a session waits for servers that are starting:
// what the config says or else what suits the host.
func (a *Aggregator) startupWait(s *session, r *host.Request) time.Duration {
	return a.config().StartupWaitOr(a.profileOf(s, r).startupWait)
}

func (s *session) clientName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// introduce keeps the name that a host gives itself in the handshake.
func (s *session) introduce(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}
