package aggregator

import (
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// checkTool returns why a call must not be sent to the upstream that is ready for it:
// that the tool is not there any more, or is not what the session was shown. waited says
// that the upstream was waited for, so that it may have listed something new since the
// tool was found.
func (s session) checkTool(to *forward.Route, waited bool) error {
	t := to.Tool
	if t == nil {
		return nil
	}
	shown := s.Shown.Last(t.Name)
	if shown == nil && !waited {
		return nil
	}
	view := s.View()
	now, ok := view.Tool(t.Name)
	mode := s.agg.config().Catalog.OnChange
	switch {
	case !ok && to.AsText:
		return errors.New(surface.UnknownTool(surfaceCall{request: request{session: s}}, t.Name))
	case !ok:
		return invalid("%s", s.Surface().NotShown(s.Plain(), t.Direct))
	case mode == schema.OnChangeIgnore || shown == nil || now.Same(shown):
		return nil
	}
	failure := &transports.Failure{
		Upstream: t.Server, Code: transports.CodeChanged, Outcome: transports.NotSent,
		Cause:   fmt.Errorf("the definition of %s has changed since it was shown", t.Name),
		Hint:    "see that the input fits the definition below, then call again",
		Details: now.Changes(shown),
	}
	if mode == schema.OnChangeBlock {
		failure.Hint = "list the tools again, then call again"
		if how := s.Surface().HowToRead; how != nil {
			failure.Hint = "read it again with " + how(t.Name) + ", then call again"
		}
		return failure
	}
	s.Shown.Add(now)
	return failure
}
