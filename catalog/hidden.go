package catalog

import (
	"sync"
)

// A Hider says which tools no call could run. They are in no list and no search. It is
// comparable: views are kept for each.
type Hider interface {
	// MayHide reports whether a server could have tools that are hidden.
	MayHide(server string) bool
	// Hides reports whether a tool is hidden, by the server's own name for it. class is one of
	// toolglob.Classes.
	Hides(server, tool, class string) bool
}

// hiddenViews are the views of a content without hidden tools, by hider.
type hiddenViews struct {
	mu sync.Mutex
	of map[Hider]*Views
}

// Hiding returns the views without the tools that h hides; nil hides none. Each call with the
// same hider returns the same views.
func (vs *Views) Hiding(h Hider) *Views {
	if h == nil {
		return vs
	}
	all := &vs[NoTasks].hidden
	all.mu.Lock()
	defer all.mu.Unlock()
	views := all.of[h]
	if views == nil {
		if all.of == nil {
			all.of = map[Hider]*Views{}
		}
		views = vs.without(h)
		all.of[h] = views
	}
	return views
}

func (vs *Views) without(h Hider) *Views {
	parts := make([]*serverView, len(vs[NoTasks].parts))
	changed := false
	for i, p := range vs[NoTasks].parts {
		if h.MayHide(p.server.Name) {
			s := p.server
			s.hider, changed = h, true
			p = newServerView(s, p.index, p.info.Down, nil, NoTasks)
		}
		parts[i] = p
	}
	if !changed {
		return vs
	}
	return viewsOf(parts)
}

// isDenied hides a tool if no call of it could run, and keeps it.
func (p *serverView) isDenied(e *entry, leaf string) bool {
	if p.server.hider == nil || !p.server.hider.Hides(p.server.Name, e.name, ClassOf(e.annotations)) {
		return false
	}
	p.denied = append(p.denied, p.expose(e, leaf))
	return true
}

// Denied returns the tool that a view hides, by its exposed or direct name, nil if there is none.
func Denied(v *View, name string) *Tool {
	for _, p := range v.parts {
		if p.server.hider == nil {
			continue
		}
		for _, t := range p.opened().denied {
			if t.Name == name || t.Direct == name {
				return t
			}
		}
	}
	return nil
}
