package aggregator

import (
	"context"
	"encoding/json"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
)

// An ownership tells which server something belongs to.
type ownership func(v *catalog.View) (server string, ok bool)

func prompt(name string) ownership {
	return func(v *catalog.View) (string, bool) { return v.PromptOwner(name) }
}

func resource(uri string) ownership {
	return func(v *catalog.View) (string, bool) { return v.ResourceOwner(uri) }
}

// owner returns the upstream that something belongs to, nil if there is none.
func (a *Aggregator) owner(of ownership) *lazy.Upstream {
	server, ok := of(a.catalog.View())
	if !ok {
		return nil
	}
	return a.set.Get(server)
}

// forwardToOwner forwards a request as it is to the server that it belongs to,
// or answers unknown.
func (a *Aggregator) forwardToOwner(s *session, r *transports.Request, of ownership, unknown *wire.Error) {
	forward := func() bool {
		u := a.owner(of)
		if u != nil {
			a.forward(s, r, u, r.Method, r.Params, false)
		}
		return u != nil
	}
	a.retryWhenListed(r, forward, unknown)
}

// retryWhenListed calls try, which reports whether it knew what to do with the
// request. What nobody knows may come with a server that is still starting: then
// try is called again when that had its time. After that the answer is unknown.
func (a *Aggregator) retryWhenListed(r *transports.Request, try func() bool, unknown *wire.Error) {
	switch {
	case try():
		return
	case !a.incomplete():
		r.Reply(nil, unknown)
		return
	}
	a.spawn(func() {
		ctx, cancel := context.WithCancel(a.ctx)
		defer cancel()
		if !r.OnCancel(func(json.RawMessage) { cancel() }) {
			return
		}
		if err := a.awaitListings(ctx); err != nil {
			a.fail(r, err, false)
			return
		}
		if !try() {
			r.Reply(nil, unknown)
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

// awaitListings waits for the servers that are starting as long as a list does.
func (a *Aggregator) awaitListings(ctx context.Context) error {
	if err := a.awaitOnly(ctx); err != nil {
		return err
	}
	a.awaitStart(ctx)
	return ctx.Err()
}
