package catalog

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/catalog/entry"
	"github.com/dynmcp/dynmcp/internal/display"
)

// Tasks is a kind of MCP tasks: the answer to a call is a handle, by which the host fetches
// the result later. Which kind a host or a server supports depends on its protocol.
type Tasks int

const (
	NoTasks        Tasks = iota
	HandshakeTasks       // of MCP 2025-11-25: the host asks for a task
	StatelessTasks       // of the extension io.modelcontextprotocol/tasks: the server decides
)

// Views are the views of one state of the catalogue, by the tasks that a host supports. They
// differ only in tools that run only as tasks.
type Views [3]*View

// viewsOf builds the views of parts, in config order. The parts are those for hosts without
// tasks.
func viewsOf(parts []*serverView) *Views {
	var views Views
	views[NoTasks] = newView(parts)
	for _, follows := range []Tasks{HandshakeTasks, StatelessTasks} {
		views[follows] = views[NoTasks]
		own := slices.Clone(parts)
		changed := false
		for i, p := range parts {
			if p.hasOnlyTasks() && p.index.listing.Tasks == follows {
				own[i], changed = newServerView(p.server, p.index, p.info.Down, nil, follows), true
			}
		}
		if changed {
			views[follows] = newView(own)
		}
	}
	views[NoTasks].splitViews = splitOf(&views)
	return &views
}

// hasOnlyTasks reports whether leaveOut has left out a tool, or will when the tools are read.
func (p *serverView) hasOnlyTasks() bool {
	return len(p.onlyTasks) > 0 || p.unread() && p.index.stored.OnlyTasks
}

// leaveOut reports whether a tool runs only as a task of a kind that the view's hosts do not
// support, and records it.
func (p *serverView) leaveOut(e *entry.Tool) bool {
	offered := p.index.listing.Tasks
	if !e.OnlyTask || offered != NoTasks && offered == p.follows {
		return false
	}
	p.onlyTasks = append(p.onlyTasks, e.Name)
	return true
}

// warnOfTasks warns of the tools that leaveOut has recorded.
func (p *serverView) warnOfTasks() {
	if len(p.onlyTasks) == 0 {
		return
	}
	var names []string
	for i, name := range p.onlyTasks {
		if i == entry.MaxNamed {
			names = append(names, "and more")
			break
		}
		names = append(names, display.Name(name))
	}
	p.warnf("left out for hosts without tasks, because they run only as tasks: %s", strings.Join(names, ", "))
}

// whyNoTask returns why leaveOut has left out a tool, "" for any other.
func (p *serverView) whyNoTask(name string) string {
	switch {
	case !slices.Contains(p.onlyTasks, name):
		return ""
	case p.index.listing.Tasks == NoTasks:
		return "it runs only as a task (MCP tasks), which its server does not offer"
	}
	return "it runs only as a task (MCP tasks), and this host does not follow those of its server"
}
