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

// A target is the prompt or resource that a request is about.
type target struct {
	session session
	name    string // of the prompt, or the URI of the resource
	prompt  bool
	// capability is what an upstream must have to take the request.
	capability string
	// guess is true if an upstream may have it without listing it.
	guess bool
	// unknown is the answer if no upstream knows it.
	unknown *wire.Error
}

func (s session) prompt(name string) target {
	return target{session: s, name: name, prompt: true, capability: "prompts", unknown: transports.InvalidParams("Unknown prompt: %s", name)}
}

// owner returns the upstream that is known to have the target, or nil.
func (to target) owner() *lazy.Upstream {
	s := to.session
	if !to.prompt {
		return s.agg.fleet.ResourceOwner(s.Session, to.name)
	}
	server, _ := s.Plain().PromptOwner(to.name)
	return s.agg.set.Get(server)
}

// resource returns the target for a URI. Its owner lists the URI, has a template for it,
// or has returned it in a result.
func (s session) resource(uri string, era transports.Era) target {
	to := target{
		session:    s,
		name:       uri,
		capability: "resources",
		guess:      true,
		unknown: &wire.Error{
			Code:    forward.CodeResourceNotFound,
			Message: "Unknown resource: " + uri,
			Data:    wire.Set(transports.InvalidParams("").Data, "uri", wire.Quote(uri)),
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
		return transports.OutcomeError(wire.CodeMethodNotFound, "no server has "+to.capability, transports.NotSent)
	}
	names := s.Plain().Texts().NotLoaded()
	if names == "" {
		return to.unknown
	}
	unknown := *to.unknown
	unknown.Message += ". Servers not started yet, which may have it: " + names
	if to.guess && s.Plain().Texts().AnyUnlisted() { // Claude Code replaces the message of "not found" by its own
		e := transports.OutcomeError(transports.CodeNotListed, unknown.Message, transports.NotSent)
		e.Data = wire.Set(e.Data, "uri", wire.Get(unknown.Data, "uri"))
		return e
	}
	return &unknown
}

// candidates returns the upstreams to try for a target without a known owner, in config
// order. They are connected ones; in a session about one server it is that server.
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

// sendTo sends the request unchanged to the owner of its target, or else to the
// upstreams that may have it.
func (q request) sendTo(to target) {
	q.answer(surface.Question{Known: func() bool { return to.owner() != nil }, Answer: func() {
		if u := to.owner(); u != nil {
			q.agg.calls.Dispatch(q.Session, q.r, forward.Route{Upstream: u, Params: q.r.Params})
			return
		}
		q.tryEach(to, q.candidates(to))
	}}, false)
}

// tryEach sends the request to the upstreams in turn until one does not refuse it. If
// the last one fails, its failure is the answer.
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

// passOn sends a request with an unknown method to a named server, or with "" to the
// only one.
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
