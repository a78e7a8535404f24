package aggregator

import (
	"encoding/json"
	"sync"

	"dynmcp/internal/wire"
	"dynmcp/lazy"
)

// A task of a server that all share is for the user whose call became it: ids can be
// guessed, and to its server we are one client, who may see all tasks.

// maxTasksOf is how many tasks of one user are remembered, of which the oldest go first.
const maxTasksOf = 10_000

// taskUsers say whose the tasks of servers are that all share, by the server's name and
// the task's id. The zero value is ready to use: all are the zero principal's.
type taskUsers struct {
	mu     sync.Mutex
	byTask map[string]principal
	tasks  map[principal][]string // oldest first
}

func (t *taskUsers) add(p principal, task string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == (principal{}) {
		delete(t.byTask, task) // a server that was started again may give out the same id
		return
	}
	if t.byTask == nil {
		t.byTask, t.tasks = map[string]principal{}, map[principal][]string{}
	}
	t.byTask[task] = p
	t.tasks[p] = append(t.tasks[p], task)
	if of := t.tasks[p]; len(of) > maxTasksOf {
		if t.byTask[of[0]] == p {
			delete(t.byTask, of[0])
		}
		t.tasks[p] = of[1:]
	}
}

func (t *taskUsers) get(task string) principal {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byTask[task]
}

// addTask says that a call of a session became a task, by the upstream's id, a JSON string.
func (p *peer) addTask(s *session, id json.RawMessage) {
	if own, ok := wire.Text(id); ok && !isolated(&p.upstream.Server) {
		p.agg.taskUsers.add(s.principal, p.upstream.Server.Name+"/"+own)
	}
}

// hasTask reports whether a task of an upstream, by its id there, is for a session's user.
func (s *session) hasTask(u *lazy.Upstream, own string) bool {
	return isolated(&u.Server) || s.agg.taskUsers.get(u.Server.Name+"/"+own) == s.principal
}
