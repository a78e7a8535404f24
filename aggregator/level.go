package aggregator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/transports"
	"dynmcp/transports/host"
	"dynmcp/transports/upstream"
)

// levelWait is how long the answer to logging/setLevel, and a server that starts,
// wait for an upstream to take the level: what it logs in the next call depends
// on it.
const levelWait = 2 * time.Second

// levels are those of log messages (MCP, "Logging").
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// answerLevel passes the log level on to every upstream that logs.
func (a *Aggregator) answerLevel(ctx context.Context, s *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if !a.offers("logging") {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	params := host.RawParams(req)
	if level, _ := wire.Text(wire.Get(params, "level")); !slices.Contains(levels, level) {
		return nil, invalid("unknown log level %q; want one of %s", level, strings.Join(levels, ", "))
	}
	s.mu.Lock()
	s.level = wire.Get(params, "level")
	s.mu.Unlock()
	a.setLevel(ctx, params)
	return next(ctx, "logging/setLevel", req)
}

// setLevel tells every connected upstream that logs, and remembers the level
// for those to come. params are those of logging/setLevel. What an upstream
// says to it is no concern of the host's.
func (a *Aggregator) setLevel(ctx context.Context, params json.RawMessage) {
	a.mu.Lock()
	a.level = params
	a.mu.Unlock()
	var conns []*upstream.Conn
	for _, u := range a.set.All() {
		if conn := u.Conn(); conn != nil {
			conns = append(conns, conn)
		}
	}
	a.sendLevel(ctx, params, conns...)
}

// sendCurrentLevel tells a new upstream the level that hosts asked for already.
func (a *Aggregator) sendCurrentLevel(ctx context.Context, conn *upstream.Conn) {
	a.mu.Lock()
	params := a.level
	a.mu.Unlock()
	if params != nil {
		a.sendLevel(ctx, params, conn)
	}
}

// sendLevel waits for the answers only so long; they may come later.
func (a *Aggregator) sendLevel(ctx context.Context, params json.RawMessage, conns ...*upstream.Conn) {
	answered := make(chan struct{}, len(conns))
	for _, conn := range conns {
		a.spawn(func() {
			a.sendLevelTo(conn, params)
			answered <- struct{}{}
		})
	}
	timer := time.NewTimer(levelWait)
	defer timer.Stop()
	for range conns {
		select {
		case <-answered:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *Aggregator) sendLevelTo(conn *upstream.Conn, params json.RawMessage) {
	if !conn.ServerInfo().Has("logging") || conn.Era() == transports.Stateless {
		return // in the stateless era each request says its level
	}
	ctx, cancel := context.WithTimeout(a.ctx, askWait)
	defer cancel()
	if _, err := conn.Call(ctx, "logging/setLevel", params); err != nil {
		a.log.Warn("setLoggingLevel failed", "upstream", conn.Name(), "err", err)
	}
}
