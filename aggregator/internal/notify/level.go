package notify

import (
	"encoding/json"
	"slices"

	"github.com/dynmcp/dynmcp/internal/wire"
)

// Levels are those of log messages, the most verbose first (MCP, "Logging").
var Levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// A Level is a host's requested log level. In the stateless era it is the most verbose level of its
// requests. The zero value is no level.
type Level struct {
	Params   json.RawMessage // of logging/setLevel
	Severity int             // index in Levels
}

// Severity returns the index of a level, raw JSON, in Levels; -1 if it is unknown.
func Severity(level json.RawMessage) int {
	name, _ := wire.Text(level)
	return slices.Index(Levels, name)
}

// IsSet reports whether a level was requested.
func (l Level) IsSet() bool { return l.Params != nil }

// Covers reports whether a host that requested a level also gets the messages of other.
func (l Level) Covers(other Level) bool {
	return l.IsSet() && (!other.IsSet() || l.Severity <= other.Severity)
}

// or returns the more verbose one of two levels.
func (l Level) or(other Level) Level {
	if l.Covers(other) {
		return l
	}
	return other
}

// levelUses count, by severity, the sessions that requested a level.
type levelUses [8]struct {
	sessions int
	params   json.RawMessage // of logging/setLevel, from one of them
}

func (all *levelUses) add(level Level, n int) {
	if !level.IsSet() {
		return
	}
	use := &all[level.Severity]
	if use.sessions += n; n > 0 {
		use.params = level.Params
	}
}

// verbose returns the most verbose requested level.
func (all *levelUses) verbose() Level {
	for severity, use := range all {
		if use.sessions > 0 {
			return Level{use.params, severity}
		}
	}
	return Level{}
}

// Logs reports whether a log message is at least as severe as asked, or its severity is
// unknown.
func Logs(asked int, params json.RawMessage) bool {
	severity := Severity(wire.Get(params, "level"))
	return severity < 0 || severity >= asked
}
