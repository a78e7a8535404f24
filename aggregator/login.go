package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
)

// A request that fails because its server wants a login is answered with the command
// to run, unless its host can show pages to its user (URL mode elicitation). Then the host is
// offered the login, and the request continues after it:
//
//	a host of the handshake era is asked while its request waits
//	a host of the stateless era gets the question as a result, and its next request
//	waits for the login
//
// The host opens the browser, if its user agrees. A user of a gateway logs in to a server with
// credentials of users for himself: the browser comes back to the gateway, from anywhere, and a host
// that cannot show pages gets the address in the error. A login belongs to the session to which it
// was offered or, if each request has its own session, to the user. All requests of that
// session or user wait for the same login.

// failOrLogIn answers a request that failed with err, or offers its host the missing login
// and calls again after it, on a goroutine. params are the params for the upstream, nil if
// they were not yet made.
func (q request) failOrLogIn(params json.RawMessage, err error, asText bool, again func()) {
	o, err := q.offerLogin(err)
	if o == nil {
		q.fail(err, asText)
		return
	}
	r, late := q.r, o.IsOver()
	q.agg.work.AnswerWithin(r, func(ctx context.Context) {
		o.AwaitPage(ctx)
		switch {
		case !q.showsPages() && !o.IsOver():
			q.fail(ask.WithAddress(err, o), asText)
			return
		case r.Era == transports.Stateless && ctx.Err() == nil && !o.IsOver() && !o.Accepted.Load():
			r.Reply(q.agg.offers.Result(o, params), nil)
			return
		case r.Era == transports.Handshake:
			o.Ask(ctx, r)
		}
		r.NoOffer = r.NoOffer || !late
		switch cause := q.agg.offers.Await(ctx, r, o); {
		case cause == nil:
			again()
		case ctx.Err() != nil:
			q.fail(r.CutOff(o.Server, transports.NotSent), asText)
		default:
			q.fail(ask.WithLogin(err, cause), asText)
		}
	})
}

// offerLogin returns the login to offer to the host of a request, or nil, and the error to
// answer with.
func (q request) offerLogin(err error) (*ask.Offer, error) {
	r := q.r
	var failure *transports.Failure
	if !errors.As(err, &failure) || !failure.Login || q.agg.opts.Logins == nil || !ask.MayNeedInput(r.Method) {
		return nil, err
	}
	u := q.agg.set.Get(failure.Upstream)
	if u == nil {
		return nil, err
	}
	of, principal, advice := q.LoginOwner(), "", failure.Advice()
	switch own := u.Server.Credentials.User && q.User != ""; {
	case own:
		reaches := q.agg.opts.Logins.Reaches()
		if err = ask.OfUser(failure, reaches); !reaches {
			return nil, err
		}
		of, principal = q.User, q.User // it does not end with the session
	case !q.MayLogIn || !q.showsPages():
		return nil, err
	}
	o, cause := q.agg.offers.For(of, r, u.Server, principal, advice, q.Host)
	return o, ask.WithLogin(err, cause)
}

// showsPages reports whether the host of a request can open pages for its user.
func (q request) showsPages() bool {
	return ask.Lacks(q.Capabilities(q.r.Era, q.r.Meta), "elicitation/create", json.RawMessage(`{"mode":"url"}`)) == ""
}

// resumes takes the answer to a login or to a question of the policy from a request of the
// stateless era. It returns true if the request was answered, or continues by again.
func (q request) resumes(again func()) bool {
	if q.resumesOffer(again) {
		return true
	}
	err := q.agg.judge.Permits.Resume(q.r, q.LoginOwner(), q.User)
	if err != nil {
		q.r.Reply(nil, err)
	}
	return err != nil
}

// resumesOffer takes a request whose first round was answered with the offer of a login. It
// returns false for other requests; this one waits for the login and continues by again.
func (q request) resumesOffer(again func()) bool {
	r := q.r
	id, params, ok, err := ask.Resume(r.Outline.Get(r.Params, "requestState"), r.Params)
	if err != nil {
		r.Reply(nil, err)
		return true
	}
	if !ok {
		return false
	}
	accepted := wire.EqualString(wire.Get(r.Params, "inputResponses", "login", "action"), "accept")
	r.Params, r.Outline = params, nil
	o := cmp.Or(q.agg.offers.Get(q.LoginOwner(), id), q.agg.offers.Get(q.User, id))
	if o == nil { // of long ago
		return false
	}
	o.Answered(accepted)
	q.agg.work.AnswerWithin(r, func(ctx context.Context) {
		// Without a login the request fails again, and says so.
		_ = q.agg.offers.Await(ctx, r, o)
		r.NoOffer = true
		again()
	})
	return true
}
