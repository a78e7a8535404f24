package sessions

import (
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
)

// A model that has read a tool's definition writes its input by that. What it read may
// be from an earlier run, or from before the server was updated: a call whose tool is
// not what its session was shown is not sent, and the answer says what has changed.

// Shown are the definitions that a session's model was shown. The zero value is empty.
type Shown struct {
	mu    sync.Mutex
	tools map[string]*catalog.Tool // by answers, by exposed name
	list  *catalog.View            // by a list, before these; may be nil
	said  map[string]bool          // what is said but once, see First
}

// Add notes the definition of a tool that the model can read in an answer.
func (st *Shown) Add(t *catalog.Tool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.tools == nil {
		st.tools = map[string]*catalog.Tool{}
	}
	st.tools[t.Name] = t
}

// AddList notes that the model was shown the definitions of all tools of a view.
func (st *Shown) AddList(view *catalog.View) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.list != view {
		st.list, st.tools = view, nil
	}
}

// AddPinned notes that the model was shown the definitions of pinned tools. What a list
// that is frozen repeats is no news.
func (st *Shown) AddPinned(pins []string, view *catalog.View, frozen bool) {
	for _, pin := range pins {
		if t, ok := view.Tool(pin); ok && !(frozen && st.Last(t.Name) != nil) {
			st.Add(t)
		}
	}
}

// Last returns the definition of a tool that the model was shown last, nil if it was
// shown none.
func (st *Shown) Last(name string) *catalog.Tool {
	st.mu.Lock()
	t, list := st.tools[name], st.list
	st.mu.Unlock()
	if t == nil && list != nil {
		t, _ = list.Tool(name)
	}
	return t
}

// First reports whether it was not asked of this before: it is for what is said but once in a
// session.
func (st *Shown) First(what string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.said == nil {
		st.said = map[string]bool{}
	}
	before := st.said[what]
	st.said[what] = true
	return !before
}
