package forward

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// redirect reports whether a call must not go to its upstream. Its host has a separate upstream of
// the server, for its roots or its era, to which it is sent, or is asked for its roots first.
func (c *Call) redirect(r *host.Request) bool {
	switch {
	case c.needsRoots(r):
		c.clone()
		c.sendForRoots(r)
	case c.Env.Fleet.IsElsewhere(c.Session, c.Route.Upstream):
		c.clone()
		c.reroute(r)
	default:
		return false
	}
	return true
}

// needsRoots reports whether a call is about to go to an upstream that serves more than the roots
// of its host allow.
func (c *Call) needsRoots(r *host.Request) bool {
	u, s := c.Route.Upstream, c.Session
	if !s.Shared || s.Replica || !c.Server.Record.Entry.AsksRoots.Load() || fleet.Isolated(&u.Server) || c.Server.ServesRoots(s) {
		return false
	}
	return wire.Get(s.Capabilities(r.Era, r.Meta), "roots") != nil
}

// sendForRoots sends a call to the upstream for the roots of its host, which is asked for them if
// necessary.
func (c *Call) sendForRoots(r *host.Request) {
	s := c.Session
	if q := c.rootsAsked; q != nil {
		c.rootsAsked = nil
		if roots, ok := q.Taken(); ok {
			_ = s.Roots.Set(s.User, roots) // an invalid answer is asked for again
		}
	}
	owner, _ := s.Roots.Known()
	switch {
	case owner != "":
		c.reroute(r)
	case r.Era == transports.Handshake:
		c.Env.Work.AnswerWithin(r, func(ctx context.Context) { c.learnRoots(ctx, r) })
	case !ask.MayNeedInput(r.Method):
		c.failUnsent(r, noRoots(c.Route.Upstream.Server.Name, errors.New(c.Lacks("roots/list", nil))))
	default:
		c.rootsAsked = ask.NewQuestion("roots/list", nil)
		c.AskFirst(c.rootsAsked)
	}
}

// reroute sends a call to its session's upstream of the server.
func (c *Call) reroute(r *host.Request) {
	u, err := c.Env.Fleet.For(c.Session, c.Route.Upstream)
	if err != nil {
		c.failUnsent(r, err)
		return
	}
	c.Route.Upstream, c.Server = u, c.Env.Fleet.Of(u)
	c.SendOver(r, nil, nil)
}

// learnRoots asks a host of the handshake era for its roots and sends the call.
func (c *Call) learnRoots(ctx context.Context, r *host.Request) {
	s := c.Session
	err := s.Roots.Learn(ctx, s.User, func(ctx context.Context) (json.RawMessage, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, ask.RootsWait, fmt.Errorf("no answer within %v", ask.RootsWait))
		defer cancel()
		roots, err := r.Peer.Request(ctx, "roots/list", nil)()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return roots, err
	})
	if err == nil && !s.Count() {
		s.Roots.Forget()
		err = errors.New("too much memory is held for hosts to keep them")
	}
	switch {
	case ctx.Err() != nil:
		c.cutOffUnsent(r)
	case err != nil:
		c.failUnsent(r, noRoots(c.Route.Upstream.Server.Name, err))
	default:
		c.Env.Fleet.DropRoots(s, false)
		c.SendOver(r, nil, nil)
	}
}

// noRoots is the failure of a call whose host did not send its roots.
func noRoots(server string, cause error) error {
	return &transports.Failure{
		Upstream: server, Code: transports.CodeNoHost, Outcome: transports.NotSent,
		Cause: fmt.Errorf("it asks for the host's roots, and gets no call without them: %w", cause), Hint: "call again",
	}
}

// awaitRoots waits for the end of a gate, or asks the call's host for the roots. It reports
// false if the call has failed, or waits for the next request of its host.
func (c *Call) awaitRoots(ctx context.Context, r *host.Request, gate *ask.Gate) bool {
	failed := func(cause error) bool {
		c.failUnsent(r, &transports.Failure{Upstream: c.Route.Upstream.Server.Name, Code: transports.CodeNoHost, Outcome: transports.NotSent, Cause: cause,
			Hint: "it may serve more than the host's roots allow; a restart has it ask again"})
		return false
	}
	if q := gate.Question(); q != nil {
		if lacking := c.Lacks("roots/list", nil); lacking != "" {
			return failed(fmt.Errorf("it has asked for the host's roots, and gets no call without them: %s", lacking))
		}
		if r.Era == transports.Stateless {
			c.AskFirst(q)
			return false
		}
		answer := c.Server.RequestHost(c.Env.Fleet.Context, c.Session, r.Peer, q.Method, q.Params)
		c.Env.Work.Go(func() { q.Answer(answer()) })
	}
	select {
	case <-gate.Over():
	case <-ctx.Done():
		c.cutOffUnsent(r)
		return false
	}
	err := gate.Err()
	return err == nil || failed(err)
}

// HostRoots implements upstream.Rooted: it asks the host of the call, if it runs on this machine. The paths of another
// host are not ours, and what they name here is not the host's.
func (c *Call) HostRoots(ctx context.Context) (json.RawMessage, error) {
	const method = "roots/list"
	if !c.Session.Streams {
		return nil, errors.New("files are read only for a host that is connected to dynmcp over stdio: send the bytes as base64")
	}
	if lacking := c.Lacks(method, nil); lacking != "" {
		return nil, fmt.Errorf("%s, so no file is in them: send the bytes as base64", lacking)
	}
	r := c.HostRequest()
	if r.Era == transports.Stateless {
		return c.Ask(ctx, ask.NewQuestion(method, nil))()
	}
	return c.Server.RequestHost(ctx, c.Session, r.Peer, method, nil)()
}
