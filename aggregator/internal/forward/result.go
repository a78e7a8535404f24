package forward

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/task"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/event"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// shownResult returns a result for the host, with the host's ids of tasks. A task for a host that
// does not support tasks is an error; for another host, stored is the channel of addTask.
func (c *Call) shownResult(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage) (shown json.RawMessage, stored <-chan struct{}, err error) {
	if r.Era == transports.Stateless && ask.MayNeedInput(r.Method) && ask.NeedsInput(outline, result) {
		return c.Env.States.SealRequestState(result, c.State("")), nil, nil
	}
	switch r.Method {
	case "tools/call":
		switch {
		case conn.Era() == transports.Handshake && c.Route.Task:
			if wire.Get(result, "task") != nil {
				stored = c.Server.AddTask(c.Session, wire.Get(result, "task", "taskId"), wire.Get(result, "task", "ttl"))
				p, s, host := c.Server, c.Session, c.Session.Host
				conn.ForwardTaskProgress(&c.Call, func(params json.RawMessage) {
					if p.Accepts(s, "notifications/progress", params) {
						host.Notify("notifications/progress", p.ToHostRelation(s, params))
					}
				})
			}
			return c.Server.ToHostID(c.Session, result, "task", "taskId"), stored, nil
		case conn.Era() == transports.Handshake || !wire.EqualString(outline.Get(result, "resultType"), "task"):
		case task.Declared(wire.Get(r.Meta, transports.MetaCapabilities), r.Era) == catalog.StatelessTasks:
			stored = c.Server.AddTask(c.Session, outline.Get(result, "taskId"), outline.Get(result, "ttlMs"))
			return c.Server.ToHostID(c.Session, result, "taskId"), stored, nil
		default:
			return nil, nil, &transports.Failure{
				Upstream: c.Route.Upstream.Server.Name, Code: transports.CodeProtocol, Outcome: transports.Unknown,
				Cause: errors.New("it answered with a task, which the host does not support"),
				Hint:  "check whether it took effect: the task may still run",
			}
		}
	case "tasks/get", "tasks/update", "tasks/cancel":
		return c.Server.ToHostID(c.Session, result, "taskId"), nil, nil
	case "tasks/result":
		return c.Server.ToHostRelation(c.Session, result), nil, nil
	}
	return result, nil, nil
}

// observe reports the end of the call to observers.
func (c *Call) observe(outline *wire.Outline, result json.RawMessage, err error) {
	if c.began.IsZero() || !c.Env.Observation.Enabled() { // there was no observer when it began
		return
	}
	r := c.HostRequest()
	r.Counted = true
	end := event.Call{
		Upstream: c.Route.Upstream.Server.Name,
		Method:   c.Method,
		Began:    c.began,
		End:      time.Now(),
		Sent:     c.sent,
		Kind:     "ok",
		Outcome:  transports.Executed,

		Credential: c.Route.Upstream.Server.Credential,
		Asked:      len(c.Route.Params),
		Answered:   len(result),
		From:       c.Session.Info(),
		Surface:    c.Route.Surface,
		Result:     result,
	}
	if !c.Route.borrowed && c.Env.Observation.KeepsArguments() {
		end.Arguments = wire.Get(c.Route.Params, "arguments")
	}
	if c.Route.Tool != nil {
		end.Tool = c.Route.Tool.Upstream
	}
	end.TraceParent, _ = wire.Text(wire.Get(r.Meta, "traceparent"))
	cancelled := c.IsCancelled()
	var failure *transports.Failure
	switch {
	case cancelled && err != nil:
		end.Kind, end.Outcome = "cancelled", transports.Unknown
	case errors.As(err, &failure):
		end.Kind, end.Outcome = observe.KindOf(failure), failure.Outcome
		if failure.Outcome == transports.NotSent {
			end.Sent = time.Time{}
		}
	case err != nil:
		end.Kind = "error"
	case c.Method == "tools/call" && string(outline.Get(result, "isError")) == "true":
		end.Kind = "tool_error"
	}
	c.Env.Observation.Ended(end)
}
