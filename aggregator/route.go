package aggregator

import (
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog/names"
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
	// unknown is the answer if no upstream has it.
	unknown *wire.Error
}

func (s session) prompt(name string) target {
	return target{session: s, name: name, prompt: true, capability: "prompts", unknown: transports.InvalidParams("Unknown prompt: %s", name)}
}

// resource returns the target for a URI.
func (s session) resource(uri string, era transports.Era) target {
	to := target{
		session:    s,
		name:       uri,
		capability: "resources",
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

// owner returns the upstream that the target belongs to, and that server's own name of it; nil if there
// is none. If several servers have it, they are returned instead.
func (to target) owner() (u *lazy.Upstream, own string, several []string) {
	s := to.session
	if to.prompt {
		return s.agg.fleet.Names.Prompt(s.Session, to.name)
	}
	return s.agg.fleet.Names.Resource(s.Session, to.name)
}

// known reports whether servers have the target.
func (to target) known() bool {
	u, _, several := to.owner()
	return u != nil || several != nil
}

// notFound is the answer if no upstream has the target, or several have.
func (s session) notFound(to target) *wire.Error {
	if !s.Offers(to.capability) {
		return transports.OutcomeError(wire.CodeMethodNotFound, "no server has "+to.capability, transports.NotSent)
	}
	if _, _, several := to.owner(); several != nil {
		called, what := names.Scoped, "resource"
		if to.prompt {
			called, what = names.PromptOf, "prompt"
		}
		var ask []string
		for _, server := range several {
			ask = append(ask, called(server, to.name))
		}
		return transports.OutcomeError(transports.CodeAmbiguous, fmt.Sprintf("%s is a %s of %s: ask for %s",
			to.name, what, strings.Join(several, " and of "), strings.Join(ask, " or ")), transports.NotSent)
	}
	notLoaded := s.Plain().Texts().NotLoaded()
	if notLoaded == "" {
		return to.unknown
	}
	unknown := *to.unknown
	unknown.Message += ". Servers not started yet, which may have it: " + notLoaded
	if !to.prompt && to.capability == "resources" && s.Plain().Texts().AnyUnlisted() { // Claude Code replaces the message of "not found" by its own
		e := transports.OutcomeError(transports.CodeNotListed, unknown.Message, transports.NotSent)
		e.Data = wire.Set(e.Data, "uri", wire.Get(unknown.Data, "uri"))
		return e
	}
	return &unknown
}

// sendTo sends the request to the owner of its target. At path in the params is the target's name, in
// whose place is the server's own; the rest is unchanged.
func (q request) sendTo(to target, path ...string) {
	q.answer(surface.Question{Known: to.known, Answer: func() {
		u, own, _ := to.owner()
		if u == nil {
			q.r.Reply(nil, q.notFound(to))
			return
		}
		route := forward.Route{Upstream: u, Params: q.r.Params, Scoped: own != to.name}
		if route.Scoped {
			route.Params = wire.Replace(q.r.Params, wire.Edit{Span: wire.Find(q.r.Params, path...), With: wire.Quote(own)})
		}
		q.agg.calls.Dispatch(q.Session, q.r, route)
	}}, false)
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
