package fleet

import (
	"context"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// levelWait is how long the answer to logging/setLevel, and a starting server, wait for an upstream
// to accept the level: its log messages during the next call depend on it.
const levelWait = 2 * time.Second

// RaiseLevel records the level of log messages that a request of the stateless era wants. If
// upstreams of the handshake era must be told before they get the request, the returned channel
// is closed when they were; otherwise it is nil.
func (f *Fleet) RaiseLevel(s *sessions.Session, r *host.Request) (sent <-chan struct{}) {
	if r.Era != transports.Stateless {
		return nil
	}
	name := wire.Get(r.Meta, transports.MetaLogLevel)
	severity := notify.Severity(name)
	if severity < 0 {
		return nil
	}
	level := notify.Level{Params: name, Severity: severity}
	return s.LevelUpdate.Begin(func() chan struct{} {
		if s.Recipient.Level().Covers(level) {
			return nil
		}
		level.Params = wire.Set([]byte(`{}`), "level", name)
		before := f.Verbosities(s)
		s.Recipient.SetLevel(level)
		of := LevelsOf(f, before, func(before, _ notify.Level) bool { return !before.Covers(level) })
		if len(of) == 0 {
			return nil
		}
		sent := make(chan struct{})
		spawned := f.Work.Go(func() {
			defer s.LevelUpdate.Finish(sent)
			of.Send(f.Context, f)
		})
		if !spawned {
			close(sent)
		}
		return sent
	})
}

// Verbosities returns the most verbose requested levels for a session's upstreams.
func (f *Fleet) Verbosities(s *sessions.Session) map[*lazy.Upstream]notify.Level {
	all := map[*lazy.Upstream]notify.Level{}
	for _, u := range f.Upstreams(s) {
		all[u] = f.Of(u).Source().Verbose()
	}
	return all
}

// levels are the levels to send to upstreams.
type levels map[*upstream.Conn]notify.Level

// LevelsOf returns the most verbose levels that hosts now request from connected upstreams, if told,
// called with the previous and the new level, reports that they must be sent.
func LevelsOf(f *Fleet, all map[*lazy.Upstream]notify.Level, told func(before, now notify.Level) bool) levels {
	of := levels{}
	for u, before := range all {
		if now, conn := f.Of(u).Source().Verbose(), u.Conn(); conn != nil && told(before, now) {
			of[conn] = now
		}
	}
	return of
}

// Send waits for the answers for a limited time. The host does not see them. In the stateless era
// each request carries its level.
func (of levels) Send(ctx context.Context, f *Fleet) {
	taken := make(chan struct{}, len(of))
	for conn, level := range of {
		f.Work.Go(func() {
			defer func() { taken <- struct{}{} }()
			if !level.IsSet() || !conn.ServerInfo().Has("logging") || conn.Era() == transports.Stateless {
				return
			}
			ctx, cancel := context.WithTimeout(f.Context, RequestTimeout)
			defer cancel()
			if _, err := conn.Call(ctx, "logging/setLevel", level.Params); err != nil {
				f.Log.Warn("setLoggingLevel failed", "upstream", conn.Name(), "err", err)
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
