package fleet

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/notify"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// CodeURLFirst is the error of a server that takes a request once its user has been to
// some URLs (MCP 2025-11-25, "URL Elicitation Required Error"). The stateless era has
// no such error: there a result asks for it.
const CodeURLFirst = -32042

// Source returns the upstream as that of notifications.
func (p *Peer) Source() notify.Source[*sessions.Session] {
	src := notify.Source[*sessions.Session]{
		Registry: p.fleet.Sessions, Server: p.Upstream.Server.Name, Owned: p.isOfFew(),
		Sees: func(s *sessions.Session) bool { return p.fleet.Sees(s, p.Upstream) },
	}
	if user, ok := strings.CutPrefix(p.Upstream.Owner, PrincipalOwner); ok {
		src.User = &user
	} else if user := p.user.Load(); user != nil {
		src.User = user
	} else if id, ok := strings.CutPrefix(p.Upstream.Owner, sessionOwner); ok {
		src.Session = id
	}
	return src
}

// recipients returns the sessions that a message on a shared stream may be for. An
// upstream of one session or user notifies that. A replica is told all if nobody else uses
// the server, and one of several of any task. The completion of an elicitation is for the
// sessions that were asked; where that is not known, for those that are calling.
func (p *Peer) recipients(method string, params json.RawMessage, calls []*call.Flight) []*sessions.Session {
	src := p.Source()
	var calling []*notify.Recipient[*sessions.Session]
	for _, c := range calls {
		calling = append(calling, c.Session.Recipient)
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
		user, _ := p.fleet.TaskOwners.Of(src.Server, task)
		return src.OfTask(user)
	}
	return src.Unsolicited(calling, isAboutUpstream(method))
}

// noteElicitation notes that a session's host is asked something, if that is to visit a
// URL. Hosts of the stateless era are not notified of the completion.
func (p *Peer) noteElicitation(s *sessions.Session, params json.RawMessage) {
	if id, ok := wire.Text(wire.Get(params, "elicitationId")); ok && s.Declaration().Era != transports.Stateless {
		s.Recipient.Elicited(p.Upstream.Server.Name, id)
	}
}

// NoteURLsFirst notes the URLs that an error asks a session's host to visit.
func (p *Peer) NoteURLsFirst(s *sessions.Session, err error) {
	if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Code == CodeURLFirst {
		for asked := range wire.Elements(wire.Get(rpc.Data, "elicitations")) {
			p.noteElicitation(s, asked)
		}
	}
}

// NotifyReplicas tells other replicas that use an upstream which of its lists have changed,
// once they are known here.
func (f *Fleet) NotifyReplicas(u *lazy.Upstream, changed map[string]bool) {
	for _, s := range f.Of(u).Source().Sessions() {
		for method := range changed {
			if s.Replica {
				s.Host.Notify(method, nil)
			}
		}
	}
}
