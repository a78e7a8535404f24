package sessions

import (
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
)

// A model that has read a tool's definition writes its input by that. What it read may
// be from an earlier run, or from before the server was updated: a call whose tool is
// not what its session was shown is not sent, and the answer says what has changed.

// Definitions are those of tools that a session's model was shown. The zero value is empty.
type Definitions struct {
	mu    sync.Mutex
	tools map[string]*catalog.Tool // by answers, by exposed name
	list  *catalog.View            // by a list, before these; may be nil
	said  map[string]bool          // what is said but once, see First
}

// Add notes the definition of a tool that the model can read in an answer.
func (d *Definitions) Add(t *catalog.Tool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tools == nil {
		d.tools = map[string]*catalog.Tool{}
	}
	d.tools[t.Name] = t
}

// AddList notes that the model was shown the definitions of all tools of a view.
func (d *Definitions) AddList(view *catalog.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list != view {
		d.list, d.tools = view, nil
	}
}

// AddPinned notes that the model was shown the definitions of pinned tools. What a list
// that is frozen repeats is no news.
func (d *Definitions) AddPinned(pins []string, view *catalog.View, frozen bool) {
	for _, pin := range pins {
		if t, ok := view.Tool(pin); ok && !(frozen && d.Last(t.Name) != nil) {
			d.Add(t)
		}
	}
}

// Last returns the definition of a tool that the model was shown last, nil if it was
// shown none.
func (d *Definitions) Last(name string) *catalog.Tool {
	d.mu.Lock()
	t, list := d.tools[name], d.list
	d.mu.Unlock()
	if t == nil && list != nil {
		t, _ = list.Tool(name)
	}
	return t
}

// First reports whether it was not asked of this before: it is for what is said but once in a
// session.
func (d *Definitions) First(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.said == nil {
		d.said = map[string]bool{}
	}
	before := d.said[what]
	d.said[what] = true
	return !before
}
