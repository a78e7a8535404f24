package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// levelWait is how long the answer to logging/setLevel, and a server that starts,
// wait for an upstream to take the level: what it logs in the next call depends
// on it.
const levelWait = 2 * time.Second

// levels are those of log messages, the most verbose first (MCP, "Logging").
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// A logLevel is what a host asked for, in the stateless era the most verbose that a
// request of its did; the zero value is nothing.
type logLevel struct {
	params   json.RawMessage // of logging/setLevel
	severity int             // index in levels
}

// setLevel keeps the level of a session and passes on to upstreams that log the
// most verbose one that any session asked for.
func (s *session) setLevel(ctx context.Context, r *host.Request, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if !s.offers("logging") {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	params := bytes.Clone(r.Params)
	severity := severityOf(wire.Get(params, "level"))
	if severity < 0 {
		level, _ := wire.Text(wire.Get(params, "level"))
		return nil, invalid("unknown log level %q; want one of %s", level, strings.Join(levels, ", "))
	}
	before := map[*lazy.Upstream]logLevel{}
	for _, u := range s.upstreams() {
		before[u] = s.agg.peerOf(u).verbose()
	}
	s.mu.Lock()
	s.setLevelLocked(logLevel{params, severity})
	s.mu.Unlock()
	var told []*lazy.Upstream
	for u, before := range before {
		if verbose := s.agg.peerOf(u).verbose(); severity <= verbose.severity || verbose.severity != before.severity {
			told = append(told, u)
		}
	}
	s.agg.sendLevels(ctx, s.agg.levels(told))
	return next(ctx, r.Method, req)
}

// raiseLevel notes from which level on a request of the stateless era wants log
// messages. If upstreams of the handshake era have to be told so before they get it,
// what is returned is closed when they were; else it is nil.
func (s *session) raiseLevel(r *host.Request) (raised <-chan struct{}) {
	if r.Era != transports.Stateless {
		return nil
	}
	name := wire.Get(r.Meta, transports.MetaLogLevel)
	severity := severityOf(name)
	if severity < 0 {
		return nil
	}
	if level := s.logLevel(); level.params != nil && severity >= level.severity {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.raising
	}
	var told []*lazy.Upstream // those that log less so far
	for _, u := range s.upstreams() {
		if verbose := s.agg.peerOf(u).verbose(); verbose.params == nil || severity < verbose.severity {
			told = append(told, u)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level.params != nil && severity >= s.level.severity {
		return s.raising
	}
	s.setLevelLocked(logLevel{wire.Set([]byte(`{}`), "level", name), severity})
	if len(told) == 0 {
		return s.raising
	}
	done := make(chan struct{})
	s.raising = done
	spawned := s.agg.work.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if close(done); s.raising == done {
				s.raising = nil
			}
		}()
		s.agg.sendLevels(s.agg.ctx, s.agg.levels(told))
	})
	if !spawned {
		close(done)
	}
	return done
}

// severityOf returns the index of a level, raw JSON, in levels; -1 where it is none.
func severityOf(level json.RawMessage) int {
	name, _ := wire.Text(level)
	return slices.Index(levels, name)
}

// wantsLog reports whether a request of the stateless era asked for a log message.
func (c *forwardedCall) wantsLog(params json.RawMessage) bool {
	asked := wire.Get(c.hostRequest().Meta, transports.MetaLogLevel)
	severity := severityOf(wire.Get(params, "level"))
	return asked != nil && (severity < 0 || severity >= severityOf(asked))
}

// setLevelLocked has the session ask for a level, unless it has ended.
func (s *session) setLevelLocked(level logLevel) {
	if !s.ended {
		s.agg.audience.setLevel(s, s.level, level)
		s.level = level
	}
}

// wantsLog reports whether the host is to get a log message: not if only another
// session asked for messages of that level. verbose is what upstreams were told.
func (s *session) wantsLog(params json.RawMessage, verbose logLevel) bool {
	level := s.logLevel()
	if level.params == nil || level.severity <= verbose.severity {
		return true
	}
	severity := severityOf(wire.Get(params, "level"))
	return severity < 0 || severity >= level.severity
}

func (s *session) logLevel() logLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// levels returns how much the hosts of upstreams want logged, of those that are
// connected.
func (a *Aggregator) levels(upstreams []*lazy.Upstream) map[*upstream.Conn]logLevel {
	of := map[*upstream.Conn]logLevel{}
	for _, u := range upstreams {
		if conn := u.Conn(); conn != nil {
			of[conn] = a.peerOf(u).verbose()
		}
	}
	return of
}

// sendLevels waits for the answers only so long; they may come later. What an
// upstream says to it is no concern of the host's.
func (a *Aggregator) sendLevels(ctx context.Context, of map[*upstream.Conn]logLevel) {
	taken := make(chan struct{}, len(of))
	for conn, level := range of {
		a.work.Go(func() {
			defer func() { taken <- struct{}{} }()
			a.sendLevelTo(conn, level)
		})
	}
	late := time.After(levelWait)
	for range of {
		select {
		case <-taken:
		case <-late:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *Aggregator) sendLevelTo(conn *upstream.Conn, level logLevel) {
	if level.params == nil || !conn.ServerInfo().Has("logging") || conn.Era() == transports.Stateless {
		return // in the stateless era each request says its level
	}
	ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
	defer cancel()
	if _, err := conn.Call(ctx, "logging/setLevel", level.params); err != nil {
		a.log.Warn("setLoggingLevel failed", "upstream", conn.Name(), "err", err)
	}
}
