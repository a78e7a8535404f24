package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// A task is a call that is answered with a handle, by whose id the host asks for the
// result later. In the handshake era the host wants a call to be one (MCP 2025-11-25,
// "Tasks"); in the stateless era the server decides, for hosts that declare the
// extension io.modelcontextprotocol/tasks (2026-07-28). They pass between a host and
// an upstream that declare the same kind, and are not made into each other.
//
// The id that a host has of a task begins with its server's name, like the name of a
// tool: nothing has to be remembered, whatever is loaded, reloaded or restarted.

const (
	extensionTasks  = "io.modelcontextprotocol/tasks"
	metaRelatedTask = "io.modelcontextprotocol/related-task"
	// codeMissingCapability is the error for a request that takes a capability which
	// its sender has not declared (MCP 2026-07-28).
	codeMissingCapability = -32021
)

// declaredTasks returns which tasks the capabilities of a peer of an era declare.
func declaredTasks(capabilities json.RawMessage, era transports.Era) catalog.Tasks {
	switch {
	case era == transports.Stateless && wire.IsObject(wire.Get(capabilities, "extensions", extensionTasks)):
		return catalog.StatelessTasks
	case era == transports.Handshake && wire.IsObject(wire.Get(capabilities, "tasks")):
		return catalog.HandshakeTasks
	}
	return catalog.NoTasks
}

// offeredTasks returns which tasks an upstream makes of calls.
func offeredTasks(conn *upstream.Conn) catalog.Tasks {
	capabilities := conn.ServerInfo().Capabilities
	if conn.Era() == transports.Handshake && wire.Get(capabilities, "tasks", "requests", "tools", "call") == nil {
		return catalog.NoTasks
	}
	return declaredTasks(capabilities, conn.Era())
}

// followedTasks returns which tasks a session's host can follow. In the handshake era
// that takes tools which are shown as themselves: a call of use_tool is no task.
func (s *session) followedTasks() catalog.Tasks {
	follows := s.declaration().tasks
	if follows == catalog.HandshakeTasks && !s.surface().Direct {
		return catalog.NoTasks
	}
	return follows
}

// withTasks returns the capabilities that are advertised to a session's host with the
// tasks that the host can follow and some server offers, or may: one that is not known
// yet. A host that declares no tasks is told of none.
func (a *Aggregator) withTasks(capabilities json.RawMessage, s *session) json.RawMessage {
	follows, view := s.followedTasks(), s.views()[catalog.NoTasks]
	offered := func(capability ...string) bool {
		for _, server := range view.Servers() {
			if !server.Loaded && !server.Stored || server.Tasks == follows && wire.Get(server.Capabilities, capability...) != nil {
				return true
			}
		}
		return false
	}
	capabilities = wire.Delete(capabilities, "tasks")
	extensions := wire.Get(capabilities, "extensions")
	if wire.Get(extensions, extensionTasks) != nil {
		extensions = wire.Delete(extensions, extensionTasks)
		capabilities = wire.Set(capabilities, "extensions", extensions)
	}
	switch {
	case follows == catalog.StatelessTasks && offered("extensions", extensionTasks):
		if !wire.IsObject(extensions) {
			extensions = []byte(`{}`)
		}
		capabilities = wire.Set(capabilities, "extensions", wire.Set(extensions, extensionTasks, []byte(`{}`)))
	case follows == catalog.HandshakeTasks && offered("tasks"):
		tasks := json.RawMessage(`{"requests":{"tools":{"call":{}}}}`)
		for _, name := range []string{"list", "cancel"} {
			if offered("tasks", name) {
				tasks = wire.Set(tasks, name, []byte(`{}`))
			}
		}
		capabilities = wire.Set(capabilities, "tasks", tasks)
	}
	return capabilities
}

// aboutTask sends a request about a task to the server that the task's id names.
func (s *session) aboutTask(r *host.Request) {
	switch update := r.Method == "tasks/update"; {
	case r.Era == transports.Handshake && update, r.Era == transports.Stateless && r.Method == "tasks/result":
		r.Reply(nil, unknownMethod(r.Method))
		return
	case r.Era == transports.Stateless && s.declaration().tasks != catalog.StatelessTasks:
		r.Reply(nil, missingTasks())
		return
	}
	id, ok := routingMember(r, "taskId")
	if !ok {
		return
	}
	u, own := s.taskOwner(id)
	answer := func() {
		if !isOffered(u) || !s.hasTask(u, own) {
			r.Reply(nil, invalid("Unknown task: %s", id))
			return
		}
		s.dispatch(r, route{upstream: u, params: wire.Set(r.Params, "taskId", wire.Quote(own))})
	}
	if u == nil || !s.agg.peerOf(u).mayLearnTask(own) {
		answer()
		return
	}
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		s.agg.peerOf(u).learnTask(ctx, own)
		answer()
	})
}

func unknownMethod(method string) *wire.Error {
	return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", method)}
}

// missingTasks is the answer to a host that asks about tasks and has not declared the
// extension.
func missingTasks() *wire.Error {
	return &wire.Error{
		Code:    codeMissingCapability,
		Message: "missing required client capability " + extensionTasks,
		Data:    fmt.Appendf(nil, `{"requiredCapabilities":{"extensions":{%q:{}}}}`, extensionTasks),
	}
}

// taskOwner returns the server that a host's id of a task names, nil if there is none,
// and the server's own id.
func (s *session) taskOwner(id string) (u *lazy.Upstream, own string) {
	if u := s.single(); u != nil {
		return u, id
	}
	server, own, _ := strings.Cut(id, "/")
	return s.agg.set.Get(server), own
}

// shownID returns a text of an upstream with the id that a session's host has of a task in the place of
// the upstream's own, which is at path.
func (p *peer) shownID(s *session, text json.RawMessage, path ...string) json.RawMessage {
	at := wire.Find(text, path...)
	own, ok := wire.Text(at.In(text))
	if !ok || s.single() != nil {
		return text
	}
	return wire.Replace(text, wire.Edit{Span: at, With: wire.Quote(p.upstream.Server.Name + "/" + own)})
}

// shownRelation is shownID of the task that a message is about, as its _meta says.
func (p *peer) shownRelation(s *session, text json.RawMessage) json.RawMessage {
	if !p.relatesTasks.Load() {
		return text
	}
	return p.shownID(s, text, "_meta", metaRelatedTask, "taskId")
}

// ownRelation undoes shownRelation in what a host answers.
func (p *peer) ownRelation(s *session, text json.RawMessage) json.RawMessage {
	if !p.relatesTasks.Load() {
		return text
	}
	at := wire.Find(text, "_meta", metaRelatedTask, "taskId")
	id, ok := wire.Text(at.In(text))
	if u, own := s.taskOwner(id); ok && u != nil && u.Server.Name == p.upstream.Server.Name {
		return wire.Replace(text, wire.Edit{Span: at, With: wire.Quote(own)})
	}
	return text
}

// shownResult returns a result as its host is to see it, with the host's ids of tasks.
// A task for a host that cannot follow it is an error; of another, stored is addTask's.
func (c *forwardedCall) shownResult(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage) (shown json.RawMessage, stored <-chan struct{}, err error) {
	if r.Era == transports.Stateless && ask.MayNeedInput(r.Method) && ask.NeedsInput(outline, result) {
		return c.agg.calls.States.SealOwn(result, c.State("")), nil, nil
	}
	switch r.Method {
	case "tools/call":
		switch {
		case conn.Era() == transports.Handshake && c.route.task:
			if wire.Get(result, "task") != nil {
				stored = c.peer.addTask(c.session, wire.Get(result, "task", "taskId"), wire.Get(result, "task", "ttl"))
				p, s, host := c.peer, c.session, c.session.host
				conn.KeepProgress(&c.Call, func(params json.RawMessage) {
					host.Notify("notifications/progress", p.shownRelation(s, params))
				})
			}
			return c.peer.shownID(c.session, result, "task", "taskId"), stored, nil
		case conn.Era() == transports.Handshake || !wire.EqualString(outline.Get(result, "resultType"), "task"):
		case declaredTasks(wire.Get(r.Meta, transports.MetaCapabilities), r.Era) == catalog.StatelessTasks:
			stored = c.peer.addTask(c.session, outline.Get(result, "taskId"), outline.Get(result, "ttlMs"))
			return c.peer.shownID(c.session, result, "taskId"), stored, nil
		default:
			return nil, nil, &transports.Failure{
				Upstream: c.route.upstream.Server.Name, Code: transports.CodeProtocol, Outcome: transports.Unknown,
				Cause: fmt.Errorf("it answered with a task, which the host has not said that it can follow"),
				Hint:  "check whether it took effect: the task may still run",
			}
		}
	case "tasks/get", "tasks/update", "tasks/cancel":
		return c.peer.shownID(c.session, result, "taskId"), nil, nil
	case "tasks/result":
		return c.peer.shownRelation(c.session, result), nil, nil
	}
	return result, nil, nil
}

// listTasks answers with the tasks of all servers of the handshake era that list them
// and are connected.
func (s *session) listTasks(r *host.Request) {
	var listing []*lazy.Upstream
	for _, u := range s.upstreams() {
		conn := u.Conn()
		if conn != nil && conn.Era() == transports.Handshake && wire.Get(conn.ServerInfo().Capabilities, "tasks", "list") != nil {
			listing = append(listing, u)
		}
	}
	switch cursor := wire.Get(r.Params, "cursor"); {
	case r.Era == transports.Stateless || wire.Get(s.agg.withTasks([]byte(`{}`), s), "tasks", "list") == nil:
		r.Reply(nil, unknownMethod(r.Method))
		return
	case cursor != nil:
		r.Reply(nil, invalid("%s: unknown cursor %s", r.Method, cursor))
		return
	}
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		of := make([][]json.RawMessage, len(listing))
		errs := make([]error, len(listing))
		var asking sync.WaitGroup
		for i, u := range listing {
			asking.Go(func() {
				defer s.agg.work.Recover()
				of[i], errs[i] = s.tasks(ctx, u)
			})
		}
		asking.Wait()
		out, answered := []byte(`{"tasks":[`), len(listing) == 0
		for i, u := range listing {
			if errs[i] != nil {
				s.agg.log.Warn("tasks not listed", "upstream", u.Server.Name, "err", errs[i])
				continue
			}
			answered = true
			for _, task := range of[i] {
				if out[len(out)-1] != '[' {
					out = append(out, ',')
				}
				out = append(out, task...)
			}
		}
		if !answered {
			s.fail(r, errs[0], false)
			return
		}
		r.Reply(append(out, "]}"...), nil)
	})
}

func (s *session) tasks(ctx context.Context, u *lazy.Upstream) ([]json.RawMessage, error) {
	conn, release, err := u.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	tasks, err := conn.List(ctx, "tasks/list", "tasks")
	tasks = slices.DeleteFunc(tasks, func(task json.RawMessage) bool {
		own, _ := wire.Text(wire.Get(task, "taskId"))
		s.agg.peerOf(u).learnTask(ctx, own)
		return !s.hasTask(u, own)
	})
	for i := range tasks {
		tasks[i] = s.agg.peerOf(u).shownID(s, tasks[i], "taskId")
	}
	return tasks, err
}

// subscribeToTasks asks the servers of tasks for notifications about them and returns
// those that are granted. The ids are the host's, raw JSON.
func (s *session) subscribeToTasks(ctx context.Context, ids json.RawMessage) (granted map[string]bool) {
	granted = map[string]bool{}
	for raw := range wire.Elements(ids) {
		id, _ := wire.Text(raw)
		u, own := s.taskOwner(id)
		if u != nil {
			s.agg.peerOf(u).learnTask(ctx, own)
		}
		if !isOffered(u) || !s.hasTask(u, own) {
			continue
		}
		if u = s.existingFor(u); u == nil {
			continue // it has no tasks of the session's
		}
		conn, release, err := u.Acquire(ctx)
		if err == nil && conn.Era() == transports.Stateless {
			if err = conn.Subscribe(ctx, aboutTask(own)); err == nil {
				granted[id] = true
			}
		}
		if err != nil {
			s.agg.log.Warn("task not subscribed", "upstream", u.Server.Name, "err", err)
		} else {
			release()
		}
	}
	return granted
}

// taskUpdated passes on what became of a task, under the host's id, to the streams that
// name it.
func (p *peer) taskUpdated(params json.RawMessage) {
	own, _ := wire.Text(wire.Get(params, "taskId"))
	for _, s := range p.source().Subscribers(notify.TaskTopic(own), notify.TaskTopic(p.upstream.Server.Name+"/"+own)) {
		params := p.shown(s, "notifications/tasks", params)
		id, _ := wire.Text(wire.Get(params, "taskId"))
		s.recipient.Notify("notifications/tasks", params, func(st notify.Stream) bool { return st.Tasks[id] })
	}
}

// dropTasks ends the subscriptions to tasks that no stream names any more.
func (s *session) dropTasks(ids map[string]bool) {
	for id := range ids {
		u, own := s.taskOwner(id)
		u = s.existingFor(u)
		if u == nil || u.Conn() == nil || u.Conn().Era() != transports.Stateless || s.agg.sessions.IsSubscribed("", notify.TaskTopic(id)) {
			continue
		}
		s.agg.peerOf(u).subscribeLater(u.Conn(), aboutTask(own), (*upstream.Conn).Unsubscribe)
	}
}

// renewTasks tells a new connection which of its tasks hosts subscribed to.
func (p *peer) renewTasks(conn *upstream.Conn) {
	for topic, s := range p.source().Subscriptions() {
		id, isTask := notify.TaskOf(topic)
		if !isTask || conn.Era() != transports.Stateless {
			continue
		}
		if owner, own := s.taskOwner(id); s.existingFor(owner) == p.upstream {
			p.subscribeLater(conn, aboutTask(own), (*upstream.Conn).Subscribe)
		}
	}
}

func aboutTask(id string) json.RawMessage {
	return append(append([]byte(`{"taskId":`), wire.Quote(id)...), '}')
}

func quoted(texts []string) json.RawMessage {
	out := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendQuote(out, text)
	}
	return append(out, ']')
}

// onlyTask is the answer to a call by its own name of a tool that runs only as a task,
// and so is not shown to the host: its server would refuse it so. It is nil for any
// other name.
func (s *session) onlyTask(era transports.Era, name string) *wire.Error {
	if !s.surface().Direct {
		return nil
	}
	for _, view := range s.views() {
		switch t, ok := view.Direct(name); {
		case !ok || !t.OnlyTask:
		case era == transports.Stateless:
			return missingTasks()
		default:
			return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s runs only as a task, which this host has not declared that it follows", name)}
		}
	}
	return nil
}
