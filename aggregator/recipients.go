package aggregator

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
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
// the server, and one of several of any task. The completion of an elicitation is for the
// sessions that were asked; where that is not known, for those that are calling.
func (p *peer) recipients(method string, params json.RawMessage, calls []*forwardedCall) []*session {
	src := p.source()
	var calling []*notify.Recipient[*session]
	for _, c := range calls {
		calling = append(calling, c.session.recipient)
	}
	if method == "notifications/elicitation/complete" {
		id, _ := wire.Text(wire.Get(params, "elicitationId"))
		if asked := src.Elicited(id); len(asked) > 0 {
			return asked
		}
		return src.Unsolicited(calling, false)
	}
	if p.isPrivate() {
		return src.Sessions()
	}
	if replicas, only := src.Replicas(); only {
		return replicas
	}
	if method == "notifications/tasks/status" {
		task, _ := wire.Text(wire.Get(params, "taskId"))
		user, _ := p.agg.taskOwners.Of(src.Server, task)
		return src.OfTask(user)
	}
	return src.Unsolicited(calling, isAboutUpstream(method))
}

// noteElicitation notes that a session's host is asked something, if that is to visit a
// URL. Hosts of the stateless era are not notified of the completion.
func (p *peer) noteElicitation(s *session, params json.RawMessage) {
	if id, ok := wire.Text(wire.Get(params, "elicitationId")); ok && s.declaration().era != transports.Stateless {
		s.recipient.Elicited(p.upstream.Server.Name, id)
	}
}

// noteURLsFirst notes the URLs that an error asks a session's host to visit.
func (p *peer) noteURLsFirst(s *session, err error) {
	if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Code == codeURLFirst {
		for asked := range wire.Elements(wire.Get(rpc.Data, "elicitations")) {
			p.noteElicitation(s, asked)
		}
	}
}
