package aggregator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/taskowner"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// answered takes the upstream's answer, in the order of the wire.
func (c *forwardedCall) answered(result json.RawMessage, err error) {
	if l := c.route.link; l != nil {
		l.answered(c, result, err)
		return
	}
	if r, conn, ok := c.Finish(result, err); ok {
		c.Deliver(r, conn, c.Outline, result, err)
	}
}

// Deliver implements call.Owner: it gives a request the answer to the call, which came over conn. outline is of
// the result, and may be nil.
func (c *forwardedCall) Deliver(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage, err error) {
	defer work.ReplyPanic(r)
	switch {
	case err == nil && r.Era == transports.Handshake && conn.Era() == transports.Stateless && ask.MayNeedInput(r.Method) && ask.NeedsInput(outline, result):
		c.nextRound(r, result)
	case err == nil:
		if conn.ServerInfo().Has("resources") {
			c.peer.seenURIs.addFrom(result)
		}
		result, stored, err := c.shownResult(r, conn, outline, result)
		if err != nil {
			c.fail(r, err)
			return
		}
		c.observe(outline, result, nil)
		if stored != nil {
			replyWhenStored(c.agg.taskOwners, r, bytes.Clone(result), stored) // it is lent
			return
		}
		result = c.explained(outline, result)
		if t := c.route.tool; t != nil && t.Shaped() && wire.IsObject(result) {
			c.replyShaped(r, t, result)
			return
		}
		r.Reply(result, nil)
	case !c.route.retry && isRepeatable(err, conn):
		again := c.again()
		again.retry = true
		c.session.dispatch(r, again)
	case c.route.onError != nil:
		c.route.onError(err)
	default:
		if asks := urlsFirst(r, c.route.params, conn, err); asks != nil {
			r.Reply(asks, nil)
			return
		}
		c.peer.noteURLsFirst(c.session, err)
		c.fail(r, shownError(r, conn, c.explainedError(err)))
	}
}

// shownError returns an upstream's error as the era of the host has it: that there is
// no such resource had a code of its own before the stateless one.
func shownError(r *host.Request, conn *upstream.Conn, err error) error {
	var rpc *wire.Error
	if r.Era != transports.Stateless || conn.Era() == transports.Stateless || r.Method != "resources/read" || !errors.As(err, &rpc) || rpc.Code != codeResourceNotFound {
		return err
	}
	shown := *rpc
	if shown.Code = wire.CodeInvalidParams; rpc.Raw != nil {
		shown.Raw = wire.Set(rpc.Raw, "code", strconv.AppendInt(nil, shown.Code, 10))
	}
	return &shown
}

// isRepeatable reports whether a call certainly did not run because conn takes no
// more. Of calls that were under way when a session was forgotten, that is so only
// of those which were refused for it.
func isRepeatable(err error, conn *upstream.Conn) bool {
	var failure *transports.Failure
	if !errors.As(err, &failure) || failure.Outcome != transports.NotSent {
		return false
	}
	lost := conn.Err()
	return lost != nil && (!errors.Is(lost, upstream.ErrSessionLost) || errors.Is(err, upstream.ErrSessionLost))
}

// failUnsent ends a call that was not sent.
func (c *forwardedCall) failUnsent(r *host.Request, err error) {
	c.EndUnsent()
	c.fail(r, err)
}

// CutOff implements call.Owner.
func (c *forwardedCall) CutOff(r *host.Request, outcome transports.Outcome) {
	c.fail(r, r.CutOff(c.route.upstream.Server.Name, outcome))
}

// fail answers a request whose call has failed, or sends the call once more when its
// host has logged in.
func (c *forwardedCall) fail(r *host.Request, err error) {
	if l := c.route.link; l != nil {
		defer l.end()
		r.Reply(nil, err)
		return
	}
	c.observe(nil, nil, err)
	if !wantsLogin(err) {
		c.session.fail(r, err, c.route.asText)
		return
	}
	again := c.again()
	again.params = bytes.Clone(again.params)
	shown := again.params
	if again.opened {
		shown = c.agg.calls.States.SealOwn(shown, c.State(""))
	}
	c.session.failOrLogIn(r, shown, err, c.route.asText, func() { c.session.dispatch(r, again) })
}

// again returns the route of a call that is sent once more, as a call of its own:
// conn.Start may not have returned yet.
func (c *forwardedCall) again() route {
	again := c.route
	if again.borrowed {
		again.params = c.Params // a copy, unless Start has not returned yet
	}
	return again
}

// fail answers a request that could not be forwarded. An upstream's own error
// passes as it is.
func (s *session) fail(r *host.Request, err error, asText bool) {
	s.observeRefusal(r, err)
	err = s.reserved(err)
	failure, isFailure := errors.AsType[*transports.Failure](err)
	rpc, isTheirs := errors.AsType[*wire.Error](err)
	switch {
	case isTheirs && !isFailure:
		r.Reply(nil, rpc)
	case asText:
		r.Reply(results.Error(s.inWords(err)), nil)
	case isFailure:
		r.Reply(nil, failure.Wire())
	default:
		r.Reply(nil, &wire.Error{Code: transports.CodeShuttingDown, Message: err.Error()})
	}
}

// explain puts a failure in words for a model: what failed, whether the call
// ran, what to do, and as much of the cause as its host may know.
func (s *session) explain(err error) string { return s.inWords(s.reserved(err)) }

func (s *session) inWords(err error) string {
	var evicted *lazy.EvictedError
	var failure *transports.Failure
	switch {
	case errors.As(err, &evicted) && errors.As(evicted.Err, &failure):
		return failure.Text() + fmt.Sprintf("\n%s failed to load after %d attempts and will no longer be offered.", evicted.Upstream, evicted.Attempts) + readmitted
	case errors.As(err, &failure):
		said := *failure
		if info, ok := s.agg.catalog.View().Server(said.Upstream); ok {
			said.Upstream = info.Called
		}
		text := said.Text()
		if how := s.surface().HowToLoad; how != nil && failure.Code == transports.CodeBackingOff {
			text += "\n" + how(failure.Upstream) + " tries it at once."
		}
		return text
	}
	return err.Error()
}

// replyWhenStored answers with a task when other replicas can know whose it is.
func replyWhenStored(owners *taskowner.Owners, r *host.Request, result json.RawMessage, stored <-chan struct{}) {
	owners.WhenStored(stored, func() { r.Reply(result, nil) })
}
