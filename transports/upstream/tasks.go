package upstream

import (
	"encoding/json"
	"slices"
	"sync"
)

// maxTasks limits the tasks whose progress is forwarded. The oldest ones are dropped.
const maxTasks = 256

// taskProgress holds the tokens for the progress of calls that were answered with a task. They
// are valid as long as the task (MCP 2025-11-25, "Tasks").
type taskProgress struct {
	mu   sync.Mutex
	list []taskToken // oldest first
}

type taskToken struct {
	id     int64           // ours, of the call
	token  json.RawMessage // the host's
	notify func(params json.RawMessage)
}

// ForwardTaskProgress makes notify receive the progress of a call that was answered with a task,
// under the token in the call's params. Without a token it does nothing. It must be called from
// the call's Done. notify must not block.
func (c *Conn) ForwardTaskProgress(call *Call, notify func(params json.RawMessage)) {
	if call.token.Len == 0 {
		return
	}
	p := &c.tasks
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, taskToken{call.id, call.hostToken, notify})
	if len(p.list) > maxTasks {
		p.list = slices.Clone(p.list[1:])
	}
}

func (p *taskProgress) of(id int64) (t taskToken, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(t taskToken) bool { return t.id == id })
	if i < 0 {
		return taskToken{}, false
	}
	return p.list[i], true
}
