package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Tasks of the extension io.modelcontextprotocol/tasks of 2026-07-28. The tools that become tasks are
// those that the official conformance suite calls.

const extensionTasks = metaPrefix + "tasks"

// taskTools are listed with -tasks. work runs in the background for a client that declares the
// extension, otherwise while the client waits.
var taskTools = []struct {
	name, schema string
	required     bool
	work         func(ctx context.Context, t *task, arguments json.RawMessage) (result, failed json.RawMessage)
}{
	{"greet", `"name":{"type":"string"}`, false, nil}, // never a task
	{"slow_compute", `"seconds":{"type":"number"},"label":{"type":"string"}`, false, compute},
	{"failing_job", ``, true, func(context.Context, *task, json.RawMessage) (result, failed json.RawMessage) {
		return textResult("it failed", `,"isError":true`), nil
	}},
	{"protocol_error_job", ``, false, func(context.Context, *task, json.RawMessage) (result, failed json.RawMessage) {
		return nil, json.RawMessage(`{"code":-32603,"message":"it broke",` + grease + `}`)
	}},
	{"confirm_delete", `"filename":{"type":"string"}`, false, func(ctx context.Context, t *task, _ json.RawMessage) (result, failed json.RawMessage) {
		t.ask(ctx, "confirm")
		return textResult("deleted", ""), nil
	}},
	{"multi_input", ``, false, func(ctx context.Context, t *task, _ json.RawMessage) (result, failed json.RawMessage) {
		t.ask(ctx, "one", "two")
		return textResult("both", ""), nil
	}},
	{asksFirst, ``, false, func(_ context.Context, _ *task, answers json.RawMessage) (result, failed json.RawMessage) {
		return answers, nil
	}},
}

// asksFirst is the tool that asks for input before it becomes a task.
const asksFirst = "test_tool_with_task"

func compute(ctx context.Context, _ *task, arguments json.RawMessage) (result, failed json.RawMessage) {
	var in struct{ Seconds float64 }
	_ = json.Unmarshal(arguments, &in)
	select {
	case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
	case <-ctx.Done():
	}
	return textResult("computed", ""), nil
}

// taskTable has the tasks of a fake, which all its clients share.
type taskTable struct {
	mu   sync.Mutex
	list []*task
}

// A task is a call that continues after its answer.
type task struct {
	peer    *peer
	id      string
	created time.Time
	cancel  context.CancelFunc

	mu       sync.Mutex
	updated  time.Time
	status   string
	rest     string          // members of its state that other tasks may lack
	asked    map[string]bool // keys of the open questions
	answered chan struct{}   // closed when all are answered
}

// callTaskTool runs a tool of taskTools; ok is false for any other name.
func (c *call) callTaskTool(name string, arguments json.RawMessage) (result json.RawMessage, ok bool, err error) {
	for _, tool := range taskTools {
		switch {
		case tool.name != name:
			continue
		case tool.work == nil:
			var in struct{ Name string }
			_ = json.Unmarshal(arguments, &in)
			return textResult("Hello, "+in.Name+"!", ""), true, nil
		case !c.takesTasks() && tool.required:
			return nil, true, c.missingTasks()
		case !c.takesTasks():
			result, failed := tool.work(c.ctx, nil, arguments)
			if failed != nil {
				return nil, true, failure(-32603, "it broke")
			}
			return result, true, nil
		}
		if name == asksFirst {
			result, err := c.input("elicitation/create", json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}`))
			if err != nil || bytes.HasPrefix(result, []byte(`{"resultType":"input_required"`)) {
				return result, true, err
			}
			arguments = result
		}
		ctx, cancel := context.WithCancel(context.Background())
		f, now := c.peer.fake, time.Now()
		f.tasks.mu.Lock()
		t := &task{peer: c.peer, id: fmt.Sprintf("task-%d", len(f.tasks.list)+1), created: now, updated: now, cancel: cancel, status: "working"}
		f.tasks.list = append(f.tasks.list, t)
		f.tasks.mu.Unlock()
		state := t.state("task")
		go func() {
			result, failed := tool.work(ctx, t, arguments)
			switch {
			case ctx.Err() != nil:
				t.become("cancelled", "")
			case failed != nil:
				t.become("failed", fmt.Sprintf(`,"error":%s`, failed))
			default:
				t.become("completed", fmt.Sprintf(`,"result":%s`, result))
			}
		}()
		return state, true, nil
	}
	return nil, false, nil
}

// takesTasks reports whether a request declares the extension.
func (c *call) takesTasks() bool {
	var declared struct{ Extensions map[string]json.RawMessage }
	_ = json.Unmarshal(c.about.Capabilities, &declared)
	return c.modern() && declared.Extensions[extensionTasks] != nil
}

func (c *call) missingTasks() *rpcError {
	e := failure(-32021, "Missing required client capability")
	e.Data = fmt.Appendf(nil, `{"requiredCapabilities":{"extensions":{%q:{}}}}`, extensionTasks)
	return e
}

// aboutTask answers tasks/get, tasks/update and tasks/cancel.
func (c *call) aboutTask() (json.RawMessage, error) {
	var params struct {
		ID        string                     `json:"taskId"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if err := decode(c.Params, &params); err != nil {
		return nil, err
	}
	if !c.takesTasks() {
		return nil, c.missingTasks()
	}
	t := c.peer.fake.tasks.find(params.ID)
	switch {
	case t == nil:
		return nil, failure(-32602, "Task not found: %s", params.ID)
	case c.Method == "tasks/get":
		return t.state("complete"), nil
	case c.Method == "tasks/update":
		t.answer(params.Responses)
	default:
		t.cancel()
	}
	return json.RawMessage(`{"resultType":"complete",` + grease + `}`), nil
}

func (table *taskTable) find(id string) *task {
	table.mu.Lock()
	defer table.mu.Unlock()
	i := slices.IndexFunc(table.list, func(t *task) bool { return t.id == id })
	if i < 0 {
		return nil
	}
	return table.list[i]
}

// state returns the task as a client sees it.
func (t *task) state(resultType string) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Appendf(nil, `{"resultType":%q,%s}`, resultType, t.membersLocked())
}

func (t *task) membersLocked() string {
	return fmt.Sprintf(`"taskId":%s,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"ttlMs":6e5,"pollIntervalMs":100,%s%s`,
		quote(t.id), t.status, t.created.UTC().Format(time.RFC3339Nano), t.updated.UTC().Format(time.RFC3339Nano), grease, t.rest)
}

// become changes the state of a task that has not ended, and notifies listeners.
func (t *task) become(status, rest string) {
	t.mu.Lock()
	t.status, t.rest, t.updated = status, rest, time.Now()
	members := t.membersLocked()
	t.mu.Unlock()
	for _, l := range t.peer.openListeners() {
		if slices.Contains(l.wish.Tasks, t.id) {
			l.tell("notifications/tasks", members)
		}
	}
}

// ask asks the client questions and waits for all answers. Without a task (nil) it asks nothing.
func (t *task) ask(ctx context.Context, keys ...string) {
	if t == nil {
		return
	}
	answered := make(chan struct{})
	t.mu.Lock()
	t.answered, t.asked = answered, map[string]bool{}
	for _, key := range keys {
		t.asked[key] = true
	}
	rest := t.questionsLocked()
	t.mu.Unlock()
	t.become("input_required", rest)
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

func (t *task) questionsLocked() string {
	list := ""
	for key := range t.asked {
		if list != "" {
			list += ","
		}
		list += fmt.Sprintf(`%q:{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{"confirm":{"type":"boolean"}}}}}`, key)
	}
	return `,"inputRequests":{` + list + `}`
}

// answer handles answers to open questions.
func (t *task) answer(responses map[string]json.RawMessage) {
	t.mu.Lock()
	before := len(t.asked)
	for key := range responses {
		delete(t.asked, key)
	}
	left, rest, answered := len(t.asked), t.questionsLocked(), t.answered
	t.mu.Unlock()
	switch {
	case before == left:
	case left > 0:
		t.become("input_required", rest)
	default:
		t.become("working", "")
		close(answered)
	}
}
