package aggregator

import (
	"errors"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
)

// A model that has read a tool's definition writes its input by that. What it read may
// be from an earlier run, or from before the server was updated: a call whose tool is
// not what its session was shown is not sent, and the answer says what has changed.

// shownTools are the definitions that a session's model was shown. The zero value is empty.
type shownTools struct {
	mu      sync.Mutex
	tools   map[string]*catalog.Tool // by answers, by exposed name
	list    *catalog.View            // by a list, before these; may be nil
	schemas map[string]bool          // the tools whose input schema an error has shown
}

// add notes the definition of a tool that the model can read in an answer.
func (st *shownTools) add(t *catalog.Tool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.tools == nil {
		st.tools = map[string]*catalog.Tool{}
	}
	st.tools[t.Name] = t
}

// addList notes that the model was shown the definitions of all tools of a view.
func (st *shownTools) addList(view *catalog.View) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.list != view {
		st.list, st.tools = view, nil
	}
}

// addPinned notes that the model was shown the definitions of pinned tools. What a list
// that is frozen repeats is no news.
func (st *shownTools) addPinned(pins []string, view *catalog.View, frozen bool) {
	for _, pin := range pins {
		if t, ok := view.Tool(pin); ok && !(frozen && st.last(t.Name) != nil) {
			st.add(t)
		}
	}
}

// last returns the definition of a tool that the model was shown last, nil if it was
// shown none.
func (st *shownTools) last(name string) *catalog.Tool {
	st.mu.Lock()
	t, list := st.tools[name], st.list
	st.mu.Unlock()
	if t == nil && list != nil {
		t, _ = list.Tool(name)
	}
	return t
}

// firstSchema reports whether no error has shown the input schema of a tool before.
func (st *shownTools) firstSchema(name string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.schemas == nil {
		st.schemas = map[string]bool{}
	}
	before := st.schemas[name]
	st.schemas[name] = true
	return !before
}

// checkTool returns why a call must not be sent to the upstream that is ready for it:
// that the tool is not there any more, or is not what the session was shown. waited says
// that the upstream was waited for, so that it may have listed something new since the
// tool was found.
func (c *forwardedCall) checkTool(waited bool) error {
	t, s := c.route.tool, c.session
	if t == nil {
		return nil
	}
	shown := s.shown.last(t.Name)
	if shown == nil && !waited {
		return nil
	}
	view := s.view()
	now, ok := view.Tool(t.Name)
	mode := c.agg.config().Catalog.OnChange
	switch {
	case !ok && c.route.asText:
		return errors.New(surface.UnknownTool(surfaceCall{session: s}, t.Name))
	case !ok:
		return invalid("%s", s.surface().NotShown(s.views()[catalog.NoTasks], t.Direct))
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
		failure.Hint = "list the tools anew, then call again"
		if how := s.surface().HowToRead; how != nil {
			failure.Hint = "read it anew with " + how(t.Name) + ", then call again"
		}
		return failure
	}
	s.shown.add(now)
	return failure
}
