package aggregator

import (
	"encoding/json"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
)

// source returns the upstream as that of notifications.
func (p *peer) source() notify.Source[*session] {
	src := notify.Source[*session]{
		Registry: p.agg.sessions, Server: p.upstream.Server.Name, Owned: p.isOfFew(),
		Sees: func(s *session) bool { return s.sees(p.upstream) },
	}
	if user, ok := strings.CutPrefix(p.upstream.Owner, principalOwner); ok {
		src.User = &user
	} else if user := p.user.Load(); user != nil {
		src.User = &user.name
	} else if id, ok := strings.CutPrefix(p.upstream.Owner, sessionOwner); ok {
		src.Session = id
	}
	return src
}

// recipients returns the sessions that a message on a shared stream may be for. An
// upstream of one session or user notifies that. A replica is told all if nobody else uses
// the server, and one of several of any task.
func (p *peer) recipients(method string, params json.RawMessage, calls []*forwardedCall) []*session {
	src := p.source()
	if p.isPrivate() {
		return src.Sessions()
	}
	if replicas, only := src.Replicas(); only {
		return replicas
	}
	if method == "notifications/tasks/status" {
		task, _ := wire.Text(wire.Get(params, "taskId"))
		user, _ := p.agg.taskUsers.get(src.Server + "/" + task)
		return src.OfTask(user.name)
	}
	var calling []*notify.Recipient[*session]
	for _, c := range calls {
		calling = append(calling, c.session.recipient)
	}
	return src.Unsolicited(calling, isAboutUpstream(method))
}
