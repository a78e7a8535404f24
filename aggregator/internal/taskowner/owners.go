// Package taskowner remembers the users of tasks. A task of a shared server belongs to the
// user whose call made it. The server cannot check this, because dynmcp is its only client,
// and the ids of tasks may be guessed.
package taskowner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/records"
	"github.com/dynmcp/dynmcp/internal/seal"
)

// MaxOfUser is the number of tasks of one user that are remembered; the oldest are forgotten
// first. maxTasks is that of all users; the oldest of the user with the most are forgotten.
const (
	MaxOfUser = 10_000
	maxTasks  = 100_000
)

// requestTimeout bounds each access to the bucket.
const requestTimeout = 30 * time.Second

// Owners has the users of tasks by the server's name and the task's id. An unknown task
// belongs to "", the user of stdio.
type Owners struct {
	Bucket  records.Bucket // the owners for all replicas; nil without a cluster
	Keys    *seal.Keys
	Context context.Context // ends with the aggregator
	Work    *work.Group
	Log     *slog.Logger

	unstored atomic.Int64 // records that are not yet in Bucket

	mu     sync.Mutex
	byTask map[taskKey]string
	tasks  map[string][]taskKey // by user, oldest first
	count  int                  // in tasks
}

// A taskKey identifies a task.
type taskKey struct{ server, id string }

// record returns the key of a task in the bucket, which has only characters that keys may have.
func (k taskKey) record() string {
	return k.server + "." + base64.RawURLEncoding.EncodeToString([]byte(k.id))
}

// purpose returns the purpose for which the user of a task is sealed, so that only a replica
// can write the record.
func purpose(record string) string { return "task " + record }

// Check returns an error if the keys cannot open a record.
func Check(keys *seal.Keys, e records.Record) error {
	_, err := keys.Open(purpose(e.Key), e.Value)
	return err
}

// Of returns the user of a task.
func (o *Owners) Of(server, id string) (user string, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	user, known = o.byTask[taskKey{server, id}]
	return user, known
}

// Set notes the user of a task, which its server keeps for ttl. stored is closed when other
// replicas can read it; nil without a cluster.
func (o *Owners) Set(user, server, id string, ttl json.RawMessage) (stored <-chan struct{}) {
	key := taskKey{server, id}
	o.add(user, key)
	if o.Bucket == nil {
		return nil
	}
	done := make(chan struct{})
	life := lifetime(ttl)
	if !o.Work.Go(func() { defer close(done); o.store(user, key, life) }) {
		return nil
	}
	return done
}

func (o *Owners) add(user string, key taskKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.removeLocked(key) // a restarted server may use an id again
	if user == "" && o.Bucket == nil {
		return
	}
	if o.byTask == nil {
		o.byTask, o.tasks = map[taskKey]string{}, map[string][]taskKey{}
	}
	o.byTask[key] = user
	o.tasks[user] = append(o.tasks[user], key)
	o.count++
	if len(o.tasks[user]) > MaxOfUser {
		o.removeLocked(o.tasks[user][0])
	}
	if o.count > maxTasks {
		most := user
		for of, tasks := range o.tasks {
			if len(tasks) > len(o.tasks[most]) {
				most = of
			}
		}
		o.removeLocked(o.tasks[most][0])
	}
}

// removeLocked forgets the user of a task, if it is known.
func (o *Owners) removeLocked(key taskKey) {
	user, known := o.byTask[key]
	if !known {
		return
	}
	delete(o.byTask, key)
	o.count--
	of := o.tasks[user]
	i := slices.Index(of, key)
	if o.tasks[user] = slices.Delete(of, i, i+1); len(of) == 1 {
		delete(o.tasks, user)
	}
}

// MayLearn reports whether Learn may find the user of a task.
func (o *Owners) MayLearn(server, id string) bool {
	if o.Bucket == nil || id == "" {
		return false
	}
	_, known := o.Of(server, id)
	return !known
}

// Learn looks up the user of a task that this replica does not know, because another replica
// made the call. It may block. The error says that the bucket cannot be reached.
func (o *Owners) Learn(ctx context.Context, server, id string) error {
	if !o.MayLearn(server, id) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := taskKey{server, id}
	record := key.record()
	entry, err := o.Bucket.Get(ctx, record)
	var user []byte
	if err == nil {
		if user, err = o.Keys.Open(purpose(record), entry.Value); err != nil {
			err = fmt.Errorf("the record %s is broken: %w", record, err)
		}
	}
	switch {
	case err == nil:
		o.add(string(user), key)
	case !errors.Is(err, records.ErrNotFound):
		o.Log.Warn("the user of a task is not known", "upstream", server, "err", err)
	}
	if errors.Is(err, records.ErrUnavailable) {
		return err
	}
	return nil
}

// Lifetimes of records.
const (
	endless = 30 * 24 * time.Hour // of a task without a ttl
	longest = 365 * 24 * time.Hour
)

// lifetime returns how long the owner of a task is kept. ttl is a number of milliseconds, or
// null. The result is more than twice the ttl, because a server may count it again from when
// it has the result.
func lifetime(ttl json.RawMessage) time.Duration {
	var ms *float64
	if json.Unmarshal(ttl, &ms) != nil || ms == nil {
		return endless
	}
	most := float64(longest / time.Millisecond)
	return 2*time.Duration(min(max(*ms, 0), most))*time.Millisecond + time.Hour
}

// Bounds of storing a record.
const (
	maxHold     = 2 * time.Second // how long the call's answer waits
	retryFor    = time.Hour
	firstPause  = 50 * time.Millisecond
	lastPause   = 10 * time.Second
	maxUnstored = 10_000 // records that are retried concurrently
)

// store writes the user of a task to the bucket, and retries until that succeeds.
func (o *Owners) store(user string, key taskKey, life time.Duration) {
	few := o.unstored.Add(1) <= maxUnstored
	defer o.unstored.Add(-1)
	record := key.record()
	value := o.Keys.Seal(purpose(record), []byte(user))
	began := time.Now()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		ctx, cancel := context.WithTimeout(o.Context, requestTimeout)
		_, err := o.Bucket.WithTTL(life).Put(ctx, record, value)
		cancel()
		if err == nil {
			return
		}
		again := few && time.Since(began) < retryFor && o.Context.Err() == nil
		if pause == firstPause || !again {
			o.Log.Warn("the user of a task is not stored for other replicas", "upstream", key.server, "retries", again, "err", err)
		}
		if !again {
			return
		}
		select {
		case <-time.After(pause):
		case <-o.Context.Done():
		}
		if now, known := o.Of(key.server, key.id); known && now != user {
			return // the server was restarted, and used the id for another user
		}
	}
}

// WhenStored calls reply when other replicas can read the user of a task, or after maxHold: the
// host may ask any replica about the task.
func (o *Owners) WhenStored(stored <-chan struct{}, reply func()) {
	waits := o.Work.Go(func() {
		select {
		case <-stored:
		case <-time.After(maxHold):
		case <-o.Context.Done():
		}
		reply()
	})
	if !waits {
		reply()
	}
}
