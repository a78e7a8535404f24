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

// CodeURLElicitation is the error of a server that requires its user to visit some URLs first (MCP
// 2025-11-25, "URL Elicitation Required Error"). In the stateless era, a result asks for that
// instead.
const CodeURLElicitation = -32042

// Source returns the upstream as a source of notifications.
func (p *Endpoint) Source() notify.Source[*sessions.Session] {
	src := notify.Source[*sessions.Session]{
		Registry: p.fleet.Sessions, Server: p.Upstream.Server.Name, Owned: p.isOfFew(),
		Sight: sight{p},
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

// sight says which sessions see an upstream.
type sight struct{ of *Endpoint }

func (v sight) Sees(s *sessions.Session) bool { return v.of.fleet.Sees(s, v.of.Upstream) }

// recipients returns the sessions that a message on a shared stream may be for. An upstream of one
// session or user notifies that one. A replica gets all messages if no other session uses the server,
// and those about tasks in any case. The completion of an elicitation goes to the sessions that
// were asked; if they are unknown, to those that are calling.
func (p *Endpoint) recipients(method string, params json.RawMessage, calls []*call.Flight) []*sessions.Session {
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

// noteElicitation records that a session's host is asked to visit a URL, if it is. Hosts of the
// stateless era are not notified of the completion.
func (p *Endpoint) noteElicitation(s *sessions.Session, params json.RawMessage) {
	if id, ok := wire.Text(wire.Get(params, "elicitationId")); ok && s.Declaration().Era != transports.Stateless {
		s.Recipient.Elicited(p.Upstream.Server.Name, id)
	}
}

// NoteURLElicitations records the URLs that an error asks a session's host to visit.
func (p *Endpoint) NoteURLElicitations(s *sessions.Session, err error) {
	if rpc, ok := errors.AsType[*wire.Error](err); ok && rpc.Code == CodeURLElicitation {
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
