package catalog

import "github.com/dynmcp/dynmcp/catalog/entry"

// A Hider says which tools no call could run. They are in no list and no search. It is
// comparable: views are kept for each.
type Hider interface {
	// MayHide reports whether a server could have tools that are hidden.
	MayHide(server string) bool
	// Hides reports whether a tool is hidden, by the server's own name for it. class is that of
	// toolglob.ClassOf.
	Hides(server, tool, class string) bool
}

// Hiding returns the views without the tools that h hides; nil hides none. Each call with the
// same hider returns the same views.
func (vs *Views) Hiding(h Hider) *Views {
	if h == nil {
		return vs
	}
	return vs.variant(h, func(p *serverView) *serverView {
		if !h.MayHide(p.server.Name) {
			return p
		}
		s := p.server
		s.hider = h
		return newServerView(s, p.index, p.info.Down, nil, NoTasks)
	})
}

// isDenied hides a tool if no call of it could run, and keeps it.
func (p *serverView) isDenied(e *entry.Tool, leaf string) bool {
	if p.server.hider == nil || !p.server.hider.Hides(p.server.Name, e.Name, e.Class) {
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
