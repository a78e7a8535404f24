package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// levelWait is how long the answer to logging/setLevel, and a server that starts, wait for
// an upstream to take the level: what it logs in the next call depends on it.
const levelWait = 2 * time.Second

// setLevel keeps the level of a session and passes on to upstreams that log the most
// verbose one that any session asked for.
func (q *controlRequest) setLevel(ctx context.Context) error {
	if !q.offers("logging") {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	level := notify.Level{Params: bytes.Clone(q.r.Params)}
	level.Severity = notify.Severity(wire.Get(level.Params, "level"))
	if level.Severity < 0 {
		name, _ := wire.Text(wire.Get(level.Params, "level"))
		return invalid("unknown log level %q; want one of %s", name, strings.Join(notify.Levels, ", "))
	}
	before := q.verbosities()
	q.recipient.SetLevel(level)
	levelsOf(q.agg, before, func(before, now notify.Level) bool {
		return level.Severity <= now.Severity || now.Severity != before.Severity
	}).send(ctx, q.agg)
	return nil
}

// raiseLevel notes from which level on a request of the stateless era wants log messages.
// If upstreams of the handshake era have to be told so before they get it, what is returned
// is closed when they were; else it is nil.
func (s *session) raiseLevel(r *host.Request) (raised <-chan struct{}) {
	if r.Era != transports.Stateless {
		return nil
	}
	name := wire.Get(r.Meta, transports.MetaLogLevel)
	severity := notify.Severity(name)
	if severity < 0 {
		return nil
	}
	level := notify.Level{Params: name, Severity: severity}
	s.raising.Lock()
	defer s.raising.Unlock()
	if s.recipient.Level().Covers(level) {
		return s.raising.done
	}
	level.Params = wire.Set([]byte(`{}`), "level", name)
	before := s.verbosities()
	s.recipient.SetLevel(level)
	of := levelsOf(s.agg, before, func(before, _ notify.Level) bool { return !before.Covers(level) })
	if len(of) == 0 {
		return s.raising.done
	}
	done := make(chan struct{})
	s.raising.done = done
	spawned := s.agg.work.Go(func() {
		defer func() {
			s.raising.Lock()
			defer s.raising.Unlock()
			if close(done); s.raising.done == done {
				s.raising.done = nil
			}
		}()
		of.send(s.agg.ctx, s.agg)
	})
	if !spawned {
		close(done)
	}
	return done
}

// wantsLog reports whether a request of the stateless era asked for a log message.
func (c *forwardedCall) wantsLog(params json.RawMessage) bool {
	asked := wire.Get(c.HostRequest().Meta, transports.MetaLogLevel)
	return asked != nil && notify.Logs(notify.Severity(asked), params)
}

// verbosities returns the most verbose levels that sessions ask a session's upstreams for.
func (s *session) verbosities() map[*lazy.Upstream]notify.Level {
	all := map[*lazy.Upstream]notify.Level{}
	for _, u := range s.upstreams() {
		all[u] = s.agg.peerOf(u).source().Verbose()
	}
	return all
}

// levels are to be told to upstreams.
type levels map[*upstream.Conn]notify.Level

// levelsOf returns the most verbose levels that hosts ask upstreams for now, of those that
// are connected and are to be told, by that and the level before.
func levelsOf(a *Aggregator, all map[*lazy.Upstream]notify.Level, told func(before, now notify.Level) bool) levels {
	of := levels{}
	for u, before := range all {
		if now, conn := a.peerOf(u).source().Verbose(), u.Conn(); conn != nil && told(before, now) {
			of[conn] = now
		}
	}
	return of
}

// send waits for the answers only so long; they may come later. The host is not told what
// an upstream answers. In the stateless era each request says its level.
func (of levels) send(ctx context.Context, a *Aggregator) {
	taken := make(chan struct{}, len(of))
	for conn, level := range of {
		a.work.Go(func() {
			defer func() { taken <- struct{}{} }()
			if !level.IsSet() || !conn.ServerInfo().Has("logging") || conn.Era() == transports.Stateless {
				return
			}
			ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
			defer cancel()
			if _, err := conn.Call(ctx, "logging/setLevel", level.Params); err != nil {
				a.log.Warn("setLoggingLevel failed", "upstream", conn.Name(), "err", err)
			}
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
