package aggregator

import (
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// A target is a prompt or a resource that a request is about.
type target struct {
	// owner returns the upstream that it is known to belong to, nil if absent.
	owner func() *lazy.Upstream
	// capability is what an upstream must have to take the request.
	capability string
	// guess says that an upstream may know it without having listed it.
	guess bool
	// unknown is the answer if no upstream knows it.
	unknown *wire.Error
}

func (s session) prompt(name string) target {
	return target{
		owner: func() *lazy.Upstream {
			server, _ := s.Plain().PromptOwner(name)
			return s.agg.set.Get(server)
		},
		capability: "prompts",
		unknown:    invalid("Unknown prompt: %s", name),
	}
}

// resource is routed to the upstream that lists the URI, or has a template for it,
// or else had it in a result.
func (s session) resource(uri string, era transports.Era) target {
	to := target{
		owner:      func() *lazy.Upstream { return s.agg.fleet.ResourceOwner(s.Session, uri) },
		capability: "resources",
		guess:      true,
		unknown: &wire.Error{
			Code:    forward.CodeResourceNotFound,
			Message: "Unknown resource: " + uri,
			Data:    fleet.AboutURI(uri),
		},
	}
	if era == transports.Stateless {
		to.unknown.Code = wire.CodeInvalidParams
	}
	return to
}

// notFound is the answer if no upstream knows the target.
func (s session) notFound(to target) *wire.Error {
	if !s.Offers(to.capability) {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has " + to.capability}
	}
	names := s.Plain().Texts().NotLoaded()
	if names == "" {
		return to.unknown
	}
	unknown := *to.unknown
	unknown.Message += ". Servers not started yet, which may have it: " + names
	return &unknown
}

// candidates returns the upstreams to ask for a session about a target that none is
// known to own, in config order. None is started for it, except that of single-wrap mode,
// which has an answer to everything.
func (s session) candidates(to target) []*lazy.Upstream {
	if u := s.Single(); u != nil {
		return []*lazy.Upstream{u}
	}
	var all []*lazy.Upstream
	for _, u := range s.agg.fleet.Upstreams(s.Session) {
		if conn := u.Conn(); to.guess && conn != nil && conn.ServerInfo().Has(to.capability) {
			all = append(all, u)
		}
	}
	return all
}

// sendTo sends the request, as it is, to the owner of what it is about, or else to the
// upstreams that may know it.
func (q request) sendTo(to target) {
	q.answer(surface.Question{Known: func() bool { return to.owner() != nil }, Answer: func() {
		if u := to.owner(); u != nil {
			q.agg.calls.Dispatch(q.Session, q.r, forward.Route{Upstream: u, Params: q.r.Params})
			return
		}
		q.tryEach(to, q.candidates(to))
	}}, false)
}

// tryEach sends the request to one of the upstreams after the other until one does not
// refuse it. A failure of the last one is the answer.
func (q request) tryEach(to target, upstreams []*lazy.Upstream) {
	if len(upstreams) == 0 {
		q.r.Reply(nil, q.notFound(to))
		return
	}
	first := forward.Route{Upstream: upstreams[0], Params: q.r.Params}
	if q.Single() == nil {
		first.OnError = func(err error) {
			if _, isFailure := errors.AsType[*transports.Failure](err); isFailure && len(upstreams) == 1 {
				q.fail(err, false)
				return
			}
			q.tryEach(to, upstreams[1:])
		}
	}
	q.agg.calls.Dispatch(q.Session, q.r, first)
}

// passOn sends a request whose method we do not know to the server of that name, or with
// "" to the only one there is.
func (q request) passOn(server string) {
	r, u := q.r, q.Single()
	if all := q.View().Servers(); server == "" && u == nil && len(all) == 1 {
		server = all[0].Name
	}
	if u == nil {
		u = q.agg.fleet.Get(q.Session, server)
	}
	if !fleet.IsOffered(u) {
		r.Reply(nil, unknownMethod(r.Method))
		return
	}
	q.agg.calls.Dispatch(q.Session, r, forward.Route{Upstream: u, Params: r.Params})
}
