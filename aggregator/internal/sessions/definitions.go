package sessions

import (
	"sync"

	"github.com/dynmcp/dynmcp/catalog"
)

// A model writes the input of a tool by the definition that it has read, which may be
// outdated. If a tool has changed since its session was shown it, a call is not sent, and
// the answer says what has changed.

// Definitions are the definitions of tools that a session's model was shown. The zero value
// is empty.
type Definitions struct {
	mu    sync.Mutex
	tools map[string]*catalog.Tool // shown by answers after list, by exposed name
	list  *catalog.View            // shown by a list; may be nil
	said  map[string]bool          // see First
}

// Add notes that an answer shows the model the definition of a tool.
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

// AddPinned notes that a list showed the model the definitions of pinned tools. A frozen list
// does not replace a definition that the model was shown before.
func (d *Definitions) AddPinned(pins []string, view *catalog.View, frozen bool) {
	for _, pin := range pins {
		if t, ok := view.Tool(pin); ok && !(frozen && d.Last(t.Name) != nil) {
			d.Add(t)
		}
	}
}

// Last returns the definition of a tool that the model was shown last, nil if there is none.
func (d *Definitions) Last(name string) *catalog.Tool {
	d.mu.Lock()
	t, list := d.tools[name], d.list
	d.mu.Unlock()
	if t == nil && list != nil {
		t, _ = list.Tool(name)
	}
	return t
}

// First returns true at the first call with a key. It is for texts that a session is told
// only once.
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
