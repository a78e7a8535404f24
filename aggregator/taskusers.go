package aggregator

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dynmcp/dynmcp/cluster/kv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
)

// A task of a server that all share is for the user whose call became it: ids can be
// guessed, and to its server we are one client, who may see all tasks.

// maxTasksOf is how many tasks of one user are remembered, of which the oldest go first, and
// maxTasks how many of all, of which the oldest of the user with the most go.
const (
	maxTasksOf = 10_000
	maxTasks   = 100_000
)

// taskUsers say whose the tasks of servers are that all share, by the server's name and
// the task's id. The zero value is ready to use: all are the zero principal's.
type taskUsers struct {
	mu     sync.Mutex
	byTask map[string]principal
	tasks  map[principal][]string // oldest first
	count  int                    // in tasks
}

// add notes whose a task is; asked is whether others would be asked of one that is not known.
func (t *taskUsers) add(p principal, task string, asked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p == (principal{}) && !asked {
		delete(t.byTask, task) // a server that was started again may give out the same id
		return
	}
	if t.byTask == nil {
		t.byTask, t.tasks = map[string]principal{}, map[principal][]string{}
	}
	t.byTask[task] = p
	t.tasks[p] = append(t.tasks[p], task)
	t.count++
	if len(t.tasks[p]) > maxTasksOf {
		t.forgetLocked(p)
	}
	if t.count > maxTasks {
		most := p
		for of, tasks := range t.tasks {
			if len(tasks) > len(t.tasks[most]) {
				most = of
			}
		}
		t.forgetLocked(most)
	}
}

// forgetLocked forgets the oldest task of a user.
func (t *taskUsers) forgetLocked(p principal) {
	of := t.tasks[p]
	if t.byTask[of[0]] == p {
		delete(t.byTask, of[0])
	}
	t.count--
	if t.tasks[p] = of[1:]; len(of) == 1 {
		delete(t.tasks, p)
	}
}

func (t *taskUsers) get(task string) (p principal, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, known = t.byTask[task]
	return p, known
}

// taskKey is under what Options.Tasks has a task: of the characters that keys may have.
func taskKey(server, own string) string {
	return server + "." + base64.RawURLEncoding.EncodeToString([]byte(own))
}

// taskPurpose is for what the user of a task is sealed: nobody else says whose it is.
func taskPurpose(key string) string { return "task " + key }

// CheckTask returns why a record of Options.Tasks is none that these keys open.
func CheckTask(keys *seal.Keys, e kv.Entry) error {
	_, err := keys.Open(taskPurpose(e.Key), e.Value)
	return err
}

// learnTask finds out whose a task is of which this replica does not know: a call by way
// of another became it. It may block.
func (a *Aggregator) learnTask(ctx context.Context, u *lazy.Upstream, own string) {
	if !a.mayLearnTask(u, own) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := taskKey(u.Server.Name, own)
	entry, err := a.opts.Tasks.Get(ctx, key)
	var name []byte
	if err == nil {
		if name, err = a.opts.Keys.Open(taskPurpose(key), entry.Value); err != nil {
			err = fmt.Errorf("the record %s is broken: %w", key, err)
		}
	}
	switch {
	case err == nil:
		a.taskUsers.add(principal{string(name)}, u.Server.Name+"/"+own, true)
	case !errors.Is(err, kv.ErrNotFound):
		a.log.Warn("it is not known whose a task is", "upstream", u.Server.Name, "err", err)
	}
}

// mayLearnTask reports whether learnTask may know more of a task than this replica does.
func (a *Aggregator) mayLearnTask(u *lazy.Upstream, own string) bool {
	if a.opts.Tasks == nil || own == "" || isolated(&u.Server) {
		return false
	}
	_, known := a.taskUsers.get(u.Server.Name + "/" + own)
	return !known
}

// How long all replicas know whose a task is.
const (
	endlessTask = 30 * 24 * time.Hour // one that its server keeps for ever, or does not say
	longestTask = 365 * 24 * time.Hour
)

// taskLife returns how long it is to be known whose a task is that lives for a time, as its
// server says: a number of milliseconds, or null. A server may count them again from when
// it has the result.
func taskLife(ttl json.RawMessage) time.Duration {
	var ms *float64
	if json.Unmarshal(ttl, &ms) != nil || ms == nil {
		return endlessTask
	}
	most := float64(longestTask / time.Millisecond)
	return 2*time.Duration(min(max(*ms, 0), most))*time.Millisecond + time.Hour
}

// addTask says that a call of a session became a task, by the upstream's id, a JSON string,
// and for how long.
func (p *peer) addTask(s *session, id, ttl json.RawMessage) {
	own, ok := wire.Text(id)
	if !ok || isolated(&p.upstream.Server) || s.replica {
		return
	}
	a, server := p.agg, p.upstream.Server.Name
	a.taskUsers.add(s.principal, server+"/"+own, a.opts.Tasks != nil)
	if a.opts.Tasks == nil {
		return
	}
	key := taskKey(server, own)
	a.spawn(func() {
		ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
		defer cancel()
		if _, err := a.opts.Tasks.For(taskLife(ttl)).Put(ctx, key, a.opts.Keys.Seal(taskPurpose(key), []byte(s.principal.name))); err != nil {
			a.log.Warn("other replicas do not know whose a task is", "upstream", server, "err", err)
		}
	})
}

// hasTask reports whether a task of an upstream, by its id there, is for a session's user.
func (s *session) hasTask(u *lazy.Upstream, own string) bool {
	of, _ := s.agg.taskUsers.get(u.Server.Name + "/" + own)
	return isolated(&u.Server) || of == s.principal
}
