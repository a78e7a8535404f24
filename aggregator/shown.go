package aggregator

import (
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A model that has read a tool's definition writes its input by that. What it read may
// be from an earlier run, or from before the server was updated: a call whose tool is
// not what its session was shown is not sent, and the answer says what has changed.

// show notes the definition of a tool that a session's model can read in an answer.
func (s *session) show(t *catalog.Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown == nil {
		s.shown = map[string]*catalog.Tool{}
	}
	s.shown[t.Name] = t
}

// showAll notes that a session has read the definitions of all tools of a view.
func (s *session) showAll(view *catalog.View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed != view {
		s.listed, s.shown = view, nil
	}
}

// showPinned notes that a session has read the definitions of pinned tools. What a list
// that stays repeats is no news.
func (s *session) showPinned(view *catalog.View) {
	stays := view != s.view()
	for _, pin := range s.agg.config().Pin {
		if t, ok := view.Tool(pin); ok && !(stays && s.lastShown(t.Name) != nil) {
			s.show(t)
		}
	}
}

// lastShown returns the definition of a tool that a session was last shown, nil if it
// was shown none.
func (s *session) lastShown(name string) *catalog.Tool {
	s.mu.Lock()
	t, listed := s.shown[name], s.listed
	s.mu.Unlock()
	if t == nil && listed != nil {
		t, _ = listed.Tool(name)
	}
	return t
}

// checkTool returns why a call must not be sent to the upstream that is ready for it:
// that the tool is not there any more, or is not what the session was shown. woken says
// that the upstream was waited for, so that it may have listed something new since the
// tool was found.
func (c *forwardedCall) checkTool(woken bool) error {
	t := c.route.tool
	if t == nil {
		return nil
	}
	shown := c.session.lastShown(t.Name)
	if shown == nil && !woken {
		return nil
	}
	view := c.session.view()
	now, ok := view.Tool(t.Name)
	mode := c.agg.config().Catalog.OnChange
	switch {
	case !ok && c.route.asText:
		return errors.New(c.session.unknownTool(view, t.Name))
	case !ok:
		return c.session.notShown(t.Direct)
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
		failure.Hint = c.session.howRead(t.Name) + ", then call again"
		return failure
	}
	c.session.show(now)
	return failure
}

// howRead says how a session's model reads the definition of a tool anew.
func (s *session) howRead(tool string) string {
	switch {
	case s.exposes(schema.ExposeDiscover):
		return fmt.Sprintf(`read it anew with discover_tool {"tool_name": %s}`, wire.Quote(tool))
	case s.exposes(schema.ExposeTree):
		return "read it anew with meta_desc"
	case s.exposes(schema.ExposeBrowser):
		return fmt.Sprintf(`read it anew with mcp_discover {"jsonpath": %s}`, wire.Quote("$.tools[?(@.name=='"+tool+"')]"))
	case s.exposes(schema.ExposeProxy):
		return fmt.Sprintf(`read it anew with proxy {"action": "info", "type": "tool", "path": %s}`, wire.Quote(tool))
	}
	return "list the tools anew"
}
