package aggregator

import (
	"context"
	"encoding/json"
	"errors"

	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// codeResourceNotFound is the code for an unknown resource before the
// stateless era; from then on it is CodeInvalidParams.
const codeResourceNotFound = -32002

// A target is a prompt or a resource that a request is about.
type target struct {
	// owner is the upstream that it is known to belong to, nil where there is none.
	owner func() *lazy.Upstream
	// capability is what an upstream must have to take the request.
	capability string
	// guess says that an upstream may know it that has not told.
	guess bool
	// unknown is the answer where nobody knows it.
	unknown *wire.Error
}

func (a *Aggregator) prompt(name string) target {
	return target{
		owner: func() *lazy.Upstream {
			server, _ := a.catalog.View().PromptOwner(name)
			return a.set.Get(server)
		},
		capability: "prompts",
		unknown:    invalid("Unknown prompt: %s", name),
	}
}

// resource is routed to who lists the URI, or has a template for it, or else
// has shown it in a result.
func (a *Aggregator) resource(uri string, modern bool) target {
	to := target{
		owner:      func() *lazy.Upstream { return a.resourceOwner(uri) },
		capability: "resources",
		guess:      true,
		unknown: &wire.Error{
			Code:    codeResourceNotFound,
			Message: "Unknown resource: " + uri,
			Data:    append(append([]byte(`{"uri":`), wire.Quote(uri)...), '}'),
		},
	}
	if modern {
		to.unknown.Code = wire.CodeInvalidParams
	}
	return to
}

func (a *Aggregator) resourceOwner(uri string) *lazy.Upstream {
	if server, ok := a.catalog.View().ResourceOwner(uri); ok {
		return a.set.Get(server)
	}
	for _, u := range a.set.All() {
		if a.peerOf(u).shown.has(uri) {
			return u
		}
	}
	return nil
}

// refusal is the answer where nobody knows the target.
func (a *Aggregator) refusal(to target) *wire.Error {
	if !a.offers(to.capability) {
		return &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has " + to.capability}
	}
	return to.unknown
}

// mayKnow returns the upstreams to ask about a target that nobody is known to
// own, in config order. None is started for it, but for the one of single-wrap
// mode, which has an answer to everything.
func (a *Aggregator) mayKnow(to target) []*lazy.Upstream {
	if u := a.only(); u != nil {
		return []*lazy.Upstream{u}
	}
	var all []*lazy.Upstream
	for _, u := range a.set.All() {
		if conn := u.Conn(); to.guess && conn != nil && conn.ServerInfo().Has(to.capability) {
			all = append(all, u)
		}
	}
	return all
}

// forwardTo forwards a request, as it is, to the owner of what it is about, or
// else to whoever may know it.
func (a *Aggregator) forwardTo(s *session, r *host.Request, to target) {
	toOwner := func() bool {
		u := to.owner()
		if u != nil {
			a.forward(s, r, u, r.Method, r.Params, false)
		}
		return u != nil
	}
	a.retryWhenListed(r, toOwner, func() { a.tryEach(s, r, to, a.mayKnow(to)) })
}

// tryEach forwards a request to the first of the upstreams that does not refuse
// it. What the last one failed at, other than knowing it, is the answer.
func (a *Aggregator) tryEach(s *session, r *host.Request, to target, upstreams []*lazy.Upstream) {
	if len(upstreams) == 0 {
		r.Reply(nil, a.refusal(to))
		return
	}
	f := a.newFlight(s, r, upstreams[0], r.Method, r.Params, false)
	if a.only() == nil {
		f.refused = func(err error) {
			if failure := new(transports.Failure); len(upstreams) == 1 && errors.As(err, &failure) {
				a.fail(r, err, false)
				return
			}
			a.tryEach(s, r, to, upstreams[1:])
		}
	}
	f.begin()
}

// retryWhenListed calls try, which reports whether it knew what to do with the
// request. What nobody knows may come with a server that is still starting: then
// try is called again whenever one has started, for as long as a list would
// wait, and after that orElse.
func (a *Aggregator) retryWhenListed(r *host.Request, try func() bool, orElse func()) {
	switch {
	case try():
		return
	case !a.incomplete():
		orElse()
		return
	}
	a.spawnFor(r, func() {
		ctx, cancel := context.WithCancel(a.ctx)
		defer cancel()
		if !r.OnCancel(func(json.RawMessage) { cancel() }) {
			cancel()
		}
		err := a.awaitOnly(ctx)
		for err == nil {
			next := a.nextStart() // before the try, so that none is missed
			if try() {
				return
			}
			if next == nil || !a.awaitUntil(ctx, next) {
				break
			}
		}
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			a.fail(r, err, false)
		case ctx.Err() != nil:
			r.Reply(nil, transports.ShuttingDown(transports.NotSent))
		default:
			orElse()
		}
	})
}

// incomplete reports whether a server that is starting has yet to say what it
// has.
func (a *Aggregator) incomplete() bool {
	if a.catalog.View().Complete() {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.settling) > 0
}

// awaitListings waits for the servers that are starting, and for lists that are
// being fetched anew, as long as a list does.
func (a *Aggregator) awaitListings(ctx context.Context) error {
	if err := a.awaitOnly(ctx); err != nil {
		return err
	}
	a.awaitStart(ctx)
	a.awaitRefresh(ctx)
	return ctx.Err()
}
