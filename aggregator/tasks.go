package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// aboutTask sends a request about a task to the server that the task's id names.
func (q request) aboutTask() {
	r := q.r
	switch update := r.Method == "tasks/update"; {
	case r.Era == transports.Handshake && update, r.Era == transports.Stateless && r.Method == "tasks/result":
		r.Reply(nil, unknownMethod(r.Method))
		return
	case r.Era == transports.Stateless && q.Declaration().Tasks != catalog.StatelessTasks:
		r.Reply(nil, task.Missing())
		return
	}
	id, ok := q.member("taskId")
	if !ok {
		return
	}
	u, own := q.agg.fleet.TaskOwner(q.Session, id)
	answer := func() {
		if !fleet.IsOffered(u) || !q.agg.fleet.HasTask(q.Session, u, own) {
			r.Reply(nil, transports.InvalidParams("Unknown task: %s", id))
			return
		}
		q.agg.calls.Dispatch(q.Session, r, forward.Route{Upstream: u, Params: wire.Set(r.Params, "taskId", wire.Quote(own))})
	}
	if u == nil || !q.agg.fleet.Of(u).MayLearnTask(own) {
		answer()
		return
	}
	q.agg.work.AnswerWithin(r, func(ctx context.Context) {
		if err := q.agg.fleet.Of(u).LearnTask(ctx, own); err != nil {
			r.Reply(nil, err)
			return
		}
		answer()
	})
}

func unknownMethod(method string) *wire.Error {
	return &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not known", method)}
}

// listTasks answers with the tasks of all connected servers of the handshake era that can
// list them.
func (q request) listTasks() {
	r := q.r
	var listing []*lazy.Upstream
	for _, u := range q.agg.fleet.Upstreams(q.Session) {
		conn := u.Conn()
		if conn != nil && conn.Era() == transports.Handshake && wire.Get(conn.ServerInfo().Capabilities, "tasks", "list") != nil {
			listing = append(listing, u)
		}
	}
	switch cursor := wire.Get(r.Params, "cursor"); {
	case r.Era == transports.Stateless || wire.Get(q.WithTasks([]byte(`{}`)), "tasks", "list") == nil:
		r.Reply(nil, unknownMethod(r.Method))
		return
	case cursor != nil:
		r.Reply(nil, transports.InvalidParams("%s: unknown cursor %s", r.Method, cursor))
		return
	}
	q.agg.work.AnswerWithin(r, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, fleet.RequestTimeout)
		defer cancel()
		of := make([][]json.RawMessage, len(listing))
		errs := make([]error, len(listing))
		var asking sync.WaitGroup
		for i, u := range listing {
			asking.Go(func() {
				defer q.agg.work.Recover()
				of[i], errs[i] = q.agg.fleet.Tasks(q.Session, ctx, u)
			})
		}
		asking.Wait()
		answered := len(listing) == 0
		var all []json.RawMessage
		for i, u := range listing {
			if errs[i] != nil {
				q.agg.log.Warn("tasks not listed", "upstream", u.Server.Name, "err", errs[i])
				continue
			}
			answered, all = true, append(all, of[i]...)
		}
		if !answered {
			q.fail(errs[0], false)
			return
		}
		r.Reply(fmt.Appendf(nil, `{"tasks":%s}`, wire.Array(all)), nil)
	})
}

func quoted(texts []string) json.RawMessage {
	var all []json.RawMessage
	for _, text := range texts {
		all = append(all, wire.Quote(text))
	}
	return wire.Array(all)
}
