package forward

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/work"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
	"github.com/dynmcp/dynmcp/transports/upstream"
)

// Answered receives the upstream's answer, in the order of the wire.
func (c *Call) Answered(result json.RawMessage, err error) {
	if l := c.Route.Link; l != nil {
		l.Answered(c, result, err)
		return
	}
	if r, conn, ok := c.Finish(result, err); ok {
		c.Deliver(r, conn, c.Outline, result, err)
	}
}

// Deliver implements call.Owner: it answers a request with the answer to the call, which came over
// conn. outline describes the result, and may be nil.
func (c *Call) Deliver(r *host.Request, conn *upstream.Conn, outline *wire.Outline, result json.RawMessage, err error) {
	defer work.ReplyPanic(r)
	switch {
	case err == nil && r.Era == transports.Handshake && conn.Era() == transports.Stateless && ask.MayNeedInput(r.Method) && ask.NeedsInput(outline, result):
		c.nextRound(r, result)
	case err == nil:
		if err := c.Env.CheckPage(c, conn, result); err != nil {
			c.fail(r, err)
			return
		}
		if conn.ServerInfo().Has("resources") {
			server := c.Route.Upstream.Server.Name
			result = c.Env.Fleet.Names.Show(c.Session, server, result, c.Route.Scoped)
			result = c.Env.Fleet.Names.ShowView(c.Session, server, result, outline.Get(result, "_meta"))
		}
		result, stored, err := c.shownResult(r, conn, outline, result)
		if err != nil {
			c.fail(r, err)
			return
		}
		c.observe(outline, result, nil)
		if stored != nil {
			shown := bytes.Clone(result) // valid only during the call
			c.Env.TaskOwners.WhenStored(stored, func() { r.Reply(shown, nil) })
			return
		}
		c.relistBy(conn, result)
		result = c.Env.Explain(c, outline, result)
		if t := c.Route.Tool; t != nil && t.Shaped() && !c.Route.Whole && wire.IsObject(result) {
			c.Env.ReplyShaped(c, r, result)
			return
		}
		r.Answer = outline
		r.Reply(result, nil)
	case !c.Route.retry && isRepeatable(err, conn):
		again := c.again()
		again.retry = true
		c.Env.Dispatch(c.Session, r, again)
	case c.relist(r, conn, err):
	default:
		c.answerError(r, conn, err)
	}
}

// answerError answers a request with the upstream's error, or with what it asks for.
func (c *Call) answerError(r *host.Request, conn *upstream.Conn, err error) {
	if asks := urlElicitations(r, c.Route.Params, conn, err); asks != nil {
		r.Reply(asks, nil)
		return
	}
	c.Server.NoteURLElicitations(c.Session, err)
	c.fail(r, shownError(r, conn, c.Env.ExplainError(c, err)))
}

// shownError converts an upstream's error to the era of the host: before the stateless era, an
// unknown resource had a code of its own.
func shownError(r *host.Request, conn *upstream.Conn, err error) error {
	var rpc *wire.Error
	if r.Era != transports.Stateless || conn.Era() == transports.Stateless || r.Method != "resources/read" || !errors.As(err, &rpc) || rpc.Code != CodeResourceNotFound {
		return err
	}
	shown := *rpc
	if shown.Code = wire.CodeInvalidParams; rpc.Raw != nil {
		shown.Raw = wire.Set(rpc.Raw, "code", strconv.AppendInt(nil, shown.Code, 10))
	}
	return &shown
}

// isRepeatable reports whether a call certainly did not run because conn takes no more. Of the
// calls in flight when a session was forgotten, that is true only for those that were refused
// for that reason.
func isRepeatable(err error, conn *upstream.Conn) bool {
	var failure *transports.Failure
	if !errors.As(err, &failure) || failure.Outcome != transports.NotSent {
		return false
	}
	lost := conn.Err()
	return lost != nil && (!errors.Is(lost, upstream.ErrSessionLost) || errors.Is(err, upstream.ErrSessionLost))
}

// failUnsent ends a call that was not sent.
func (c *Call) failUnsent(r *host.Request, err error) {
	c.EndUnsent()
	c.fail(r, err)
}

// cutOffUnsent is failUnsent for a request that its host, or the end of its session, interrupts.
func (c *Call) cutOffUnsent(r *host.Request) {
	c.EndUnsent()
	c.CutOff(r, transports.NotSent)
}

// CutOff implements call.Owner.
func (c *Call) CutOff(r *host.Request, outcome transports.Outcome) {
	c.fail(r, r.CutOff(c.Route.Upstream.Server.Name, outcome))
}

// fail answers a request whose call has failed, or sends the call once more after its host has
// logged in.
func (c *Call) fail(r *host.Request, err error) {
	if l := c.Route.Link; l != nil {
		defer l.End()
		r.Reply(nil, err)
		return
	}
	c.observe(nil, nil, err)
	if !ask.WantsLogin(err) {
		c.Env.Fail(c.Session, r, err, c.Route.AsText)
		return
	}
	again := c.again()
	again.Params = bytes.Clone(again.Params)
	shown := again.Params
	if again.opened {
		shown = c.Env.States.SealRequestState(shown, c.State(""))
	}
	c.Env.FailOrLogIn(c.Session, r, shown, err, c.Route.AsText, func() { c.Env.Dispatch(c.Session, r, again) })
}

// again returns the route of a call that is sent once more, as a new call: conn.Start may not have
// returned yet.
func (c *Call) again() Route {
	again := c.Route
	if again.borrowed {
		again.Params, again.arguments = c.Params, c.Arguments // a copy, unless Start has not returned yet
	}
	return again
}

// CodeResourceNotFound is the code for an unknown resource before the
// stateless era; from then on it is CodeInvalidParams.
const CodeResourceNotFound = -32002
