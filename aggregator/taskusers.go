package aggregator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/internal/kv"
	"github.com/dynmcp/dynmcp/internal/seal"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports/host"
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

	unstored atomic.Int64 // records that others cannot read yet
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

// How long the record of whose a task is may take.
const (
	holdForTask    = 2 * time.Second // the call's answer waits for it
	retryTaskFor   = time.Hour
	retryTaskFirst = 50 * time.Millisecond
	retryTaskLast  = 10 * time.Second
	maxUnstored    = 10_000 // records that are waited for at once
)

// addTask says that a call of a session became a task, by the upstream's id, a JSON string,
// and for how long. stored is closed when other replicas can know; nil is that none ask.
func (p *peer) addTask(s *session, id, ttl json.RawMessage) (stored <-chan struct{}) {
	own, ok := wire.Text(id)
	if !ok || isolated(&p.upstream.Server) || s.replica {
		return nil
	}
	a, server := p.agg, p.upstream.Server.Name
	a.taskUsers.add(s.principal, server+"/"+own, a.opts.Tasks != nil)
	if a.opts.Tasks == nil {
		return nil
	}
	done := make(chan struct{})
	life := taskLife(ttl)
	if !a.work.Go(func() { defer close(done); a.storeTask(s.principal, server, own, life) }) {
		return nil
	}
	return done
}

// storeTask writes whose a task is for other replicas, until the store has it.
func (a *Aggregator) storeTask(of principal, server, own string, life time.Duration) {
	few := a.taskUsers.unstored.Add(1) <= maxUnstored
	defer a.taskUsers.unstored.Add(-1)
	key := taskKey(server, own)
	value := a.opts.Keys.Seal(taskPurpose(key), []byte(of.name))
	put := func() error {
		ctx, cancel := context.WithTimeout(a.ctx, requestTimeout)
		defer cancel()
		_, err := a.opts.Tasks.WithTTL(life).Put(ctx, key, value)
		return err
	}
	began := time.Now()
	for pause := retryTaskFirst; ; pause = min(2*pause, retryTaskLast) {
		err := put()
		if err == nil {
			return
		}
		again := few && time.Since(began) < retryTaskFor && a.ctx.Err() == nil
		if pause == retryTaskFirst || !again {
			a.log.Warn("other replicas do not know whose a task is", "upstream", server, "retries", again, "err", err)
		}
		if !again {
			return
		}
		select {
		case <-time.After(pause):
		case <-a.ctx.Done():
		}
		if now, known := a.taskUsers.get(server + "/" + own); known && now != of {
			return // the server was started again, and gave the id to another
		}
	}
}

// replyTask answers a call that became a task when other replicas can know whose it is, or
// after a while: its host may ask any of them about it.
func (a *Aggregator) replyTask(r *host.Request, result json.RawMessage, stored <-chan struct{}) {
	result = bytes.Clone(result) // it is lent
	waits := a.work.Go(func() {
		select {
		case <-stored:
		case <-time.After(holdForTask):
		case <-a.ctx.Done():
		}
		r.Reply(result, nil)
	})
	if !waits {
		r.Reply(result, nil)
	}
}

// hasTask reports whether a task of an upstream, by its id there, is for a session's user.
func (s *session) hasTask(u *lazy.Upstream, own string) bool {
	of, _ := s.agg.taskUsers.get(u.Server.Name + "/" + own)
	return isolated(&u.Server) || of == s.principal
}
