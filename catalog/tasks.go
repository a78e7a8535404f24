package catalog

import (
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/display"
)

// Tasks are a way to answer a call with a handle, by which the host asks for the
// result later. Which way a host and a server follow depends on the protocol they
// speak.
type Tasks int

const (
	NoTasks        Tasks = iota
	HandshakeTasks       // those of MCP 2025-11-25, which the host asks for
	StatelessTasks       // those of the extension io.modelcontextprotocol/tasks, which the server decides on
)

// Views show one state of the catalogue to hosts that follow these tasks. They are
// the same but for the tools that run only as tasks.
type Views [3]*View

// viewsOf builds the views of parts, in config order, which are those of a host
// that follows no tasks.
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
	views[NoTasks].worded = splitOf(&views)
	return &views
}

// hasOnlyTasks reports whether a tool was left out, or will be when the tools are
// read, because it runs only as a task.
func (p *serverView) hasOnlyTasks() bool {
	return len(p.onlyTasks) > 0 || p.unread() && p.index.stored.OnlyTasks
}

// leaveOut notes a tool that runs only as a task of a kind that the view's hosts do
// not follow, and reports whether it is one.
func (p *serverView) leaveOut(e *entry) bool {
	offered := p.index.listing.Tasks
	if !e.onlyTask || offered != NoTasks && offered == p.follows {
		return false
	}
	p.onlyTasks = append(p.onlyTasks, e.name)
	return true
}

// warnOfTasks names the tools that were left out for that.
func (p *serverView) warnOfTasks() {
	if len(p.onlyTasks) == 0 {
		return
	}
	names := make([]string, 0, maxNamed)
	for _, name := range p.onlyTasks[:min(len(p.onlyTasks), maxNamed)] {
		names = append(names, display.Name(name))
	}
	more := ""
	if len(p.onlyTasks) > maxNamed {
		more = " and more"
	}
	p.warnf("left out for hosts that follow no tasks, since they run only as such: %s%s", strings.Join(names, ", "), more)
}

// whyNoTask says why a tool is not offered that runs only as a task, "" for any
// other.
func (p *serverView) whyNoTask(name string) string {
	switch {
	case !slices.Contains(p.onlyTasks, name):
		return ""
	case p.index.listing.Tasks == NoTasks:
		return "it runs only as a task (MCP tasks), which its server does not offer"
	}
	return "it runs only as a task (MCP tasks), and this host does not follow those of its server"
}
