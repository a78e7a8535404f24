package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports/host"
	"dynmcp/transports/upstream"
)

// levelWait is how long the answer to logging/setLevel, and a server that starts,
// wait for an upstream to take the level: what it logs in the next call depends
// on it.
const levelWait = 2 * time.Second

// levels are those of log messages, the most verbose first (MCP, "Logging").
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// A logLevel is what a host asked for; the zero value is nothing.
type logLevel struct {
	params   json.RawMessage // of its logging/setLevel
	severity int             // index in levels
}

// setLevel keeps the level of a session and passes on to upstreams that log the
// most verbose one that any session asked for.
func (a *Aggregator) setLevel(ctx context.Context, s *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if !a.offers("logging") {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	params := bytes.Clone(host.RequestOf(req).Params)
	level, _ := wire.Text(wire.Get(params, "level"))
	severity := slices.Index(levels, level)
	if severity < 0 {
		return nil, invalid("unknown log level %q; want one of %s", level, strings.Join(levels, ", "))
	}
	if verbose, changed := a.sessions.setLevel(s, logLevel{params, severity}); changed {
		a.sendLevel(ctx, verbose, a.connections()...)
	}
	return next(ctx, "logging/setLevel", req)
}

// setLevel also returns the most verbose level that a session asked for, and
// whether upstreams have to be told of it.
func (ss *sessions) setLevel(s *session, level logLevel) (verbose logLevel, changed bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.mu.Lock()
	s.level = level
	s.mu.Unlock()
	return ss.updateVerboseLocked(s)
}

// updateVerboseLocked finds the most verbose level; of equal ones that of prefer,
// which may be nil, and which upstreams are told of even if it is the same.
func (ss *sessions) updateVerboseLocked(prefer *session) (verbose logLevel, changed bool) {
	for _, s := range ss.byID {
		level := s.logLevel()
		switch {
		case level.params == nil:
		case verbose.params == nil || level.severity < verbose.severity, s == prefer && level.severity == verbose.severity:
			verbose, changed = level, s == prefer
		}
	}
	changed = changed || verbose.params != nil && verbose.severity != ss.verbose.severity
	ss.verbose = verbose
	return verbose, changed
}

// verboseLevel returns the most verbose level that a session asked for.
func (ss *sessions) verboseLevel() logLevel {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.verbose
}

// wantsLog reports whether a session's host is to get a log message: not if only
// another session asked for messages of that level.
func (ss *sessions) wantsLog(s *session, params json.RawMessage) bool {
	level := s.logLevel()
	if level.params == nil || level.severity <= ss.verboseLevel().severity {
		return true
	}
	name, _ := wire.Text(wire.Get(params, "level"))
	severity := slices.Index(levels, name)
	return severity < 0 || severity >= level.severity
}

func (s *session) logLevel() logLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// connections returns those there are.
func (a *Aggregator) connections() (all []*upstream.Conn) {
	for _, u := range a.set.All() {
		if conn := u.Conn(); conn != nil {
			all = append(all, conn)
		}
	}
	return all
}

// sendLevel waits for the answers only so long; they may come later. What an
// upstream says to it is no concern of the host's.
func (a *Aggregator) sendLevel(ctx context.Context, level logLevel, conns ...*upstream.Conn) {
	if level.params == nil {
		return
	}
	taken := make(chan struct{}, len(conns))
	for _, conn := range conns {
		a.spawn(func() {
			defer func() { taken <- struct{}{} }()
			a.sendLevelTo(conn, level)
		})
	}
	timer := time.NewTimer(levelWait)
	defer timer.Stop()
	for range conns {
		select {
		case <-taken:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *Aggregator) sendLevelTo(conn *upstream.Conn, level logLevel) {
	if !conn.Hello().Has("logging") || conn.Stateless() {
		return // in the stateless era each request says its level
	}
	ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
	defer cancel()
	if _, err := conn.Call(ctx, "logging/setLevel", level.params); err != nil {
		a.log.Warn("setLoggingLevel failed", "upstream", conn.Name(), "err", err)
	}
}
