package aggregator

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A request that fails because its server wants a login is answered with the command
// to run, unless its host shows pages to people (URL mode elicitation). Then the host is
// offered the login, and the request goes on after it:
//
//	a host of the handshake era is asked while its request waits
//	a host of the stateless era has the question for a result, and its next request
//	waits for the login and is served like any other
//
// We open no browser: the host does, if its user agrees. A login belongs to the session
// that it was offered to, or where each request has a session of its own to their user;
// all requests of that session or user wait for the same one.

// failOrLogIn answers a request that failed with err, or offers its host the login that
// it failed for, and calls again after that, on a goroutine. params are those that the
// upstream would have had, nil where it is not that far.
func (s session) failOrLogIn(r *host.Request, params json.RawMessage, err error, asText bool, again func()) {
	o, err := s.offerLogin(r, err)
	if o == nil {
		s.fail(r, err, asText)
		return
	}
	late := o.IsOver()
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		select {
		case <-o.Shown():
		case <-o.Over():
		case <-ctx.Done():
		}
		switch {
		case r.Era == transports.Stateless && ctx.Err() == nil && !o.IsOver() && !o.IsAccepted():
			r.Reply(s.agg.offers.Result(o, params), nil)
			return
		case r.Era == transports.Handshake:
			o.Ask(ctx, r)
		}
		r.NoOffer = r.NoOffer || !late
		switch cause := s.agg.offers.Await(ctx, r, o); {
		case cause == nil:
			again()
		case ctx.Err() != nil:
			s.fail(r, transports.CutOff(o.Server(), transports.NotSent), asText)
		default:
			s.fail(r, ask.WithLogin(err, cause), asText)
		}
	})
}

// offerLogin returns the login that the host of a request is to be offered, nil if it
// is not, and the error to answer with.
func (s session) offerLogin(r *host.Request, err error) (*ask.Offer, error) {
	var failure *transports.Failure
	if !errors.As(err, &failure) || !failure.Login || s.agg.opts.LogIn == nil || !ask.MayNeedInput(r.Method) {
		return nil, err
	}
	u := s.agg.set.Get(failure.Upstream)
	if u == nil || !s.MayLogIn {
		return nil, err
	}
	capabilities := wire.Get(r.Meta, transports.MetaCapabilities)
	if r.Era == transports.Handshake {
		capabilities = s.Declaration().Capabilities
	}
	if ask.Lacks(capabilities, "elicitation/create", json.RawMessage(`{"mode":"url"}`)) != "" {
		return nil, err
	}
	o, cause := s.agg.offers.For(s.LoginOwner(), r, u.Server, failure.Advice(), s.Host)
	return o, ask.WithLogin(err, cause)
}

// resumeOffer takes a request that was answered with a login, and reports whether it
// did, which then goes on by again; false is that it goes on as it is.
func (s session) resumeOffer(r *host.Request, again func()) bool {
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
	o := s.agg.offers.Get(s.LoginOwner(), id)
	if o == nil { // of long ago
		return false
	}
	o.Answered(accepted)
	s.agg.work.AnswerWithin(r, func(ctx context.Context) {
		// Where no login was made the request fails again, and says so.
		_ = s.agg.offers.Await(ctx, r, o)
		r.NoOffer = true
		again()
	})
	return true
}
