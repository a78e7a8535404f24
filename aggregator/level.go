package aggregator

import (
	"bytes"
	"context"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// setLevel keeps the level of a session and passes on to upstreams that log the most
// verbose one that any session asked for.
func (q *controlRequest) setLevel(ctx context.Context) error {
	if !q.Offers("logging") {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	level := notify.Level{Params: bytes.Clone(q.r.Params)}
	level.Severity = notify.Severity(wire.Get(level.Params, "level"))
	if level.Severity < 0 {
		name, _ := wire.Text(wire.Get(level.Params, "level"))
		return invalid("unknown log level %q; want one of %s", name, strings.Join(notify.Levels, ", "))
	}
	before := q.agg.fleet.Verbosities(q.Session)
	q.Recipient.SetLevel(level)
	fleet.LevelsOf(q.agg.fleet, before, func(before, now notify.Level) bool {
		return level.Severity <= now.Severity || now.Severity != before.Severity
	}).Send(ctx, q.agg.fleet)
	return nil
}
