package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/sessions"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/membudget"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A surfaceRun is the aggregator for its surfaces. It implements surface.Run.
type surfaceRun struct{ agg *Aggregator }

func (r surfaceRun) Log() *slog.Logger             { return r.agg.log }
func (r surfaceRun) Memory() *membudget.Budget     { return r.agg.opts.Memory }
func (r surfaceRun) Context() context.Context      { return r.agg.ctx }
func (r surfaceRun) Go(f func())                   { r.agg.work.Go(f) }
func (r surfaceRun) Guard(f func())                { r.agg.work.Guard(f) }
func (r surfaceRun) Forget(result json.RawMessage) { r.agg.calls.Forget(result) }

// A longCall is a call of a tool of ours that makes requests of its own. It implements surface.Long.
type longCall struct {
	*toolCall
	params json.RawMessage // a copy
}

func (c *toolCall) Long() surface.Long { return &longCall{c, bytes.Clone(c.Params.All)} }

func (c *longCall) HostRequest() *host.Request  { return c.r }
func (c *longCall) HostParams() json.RawMessage { return c.params }
func (c *longCall) Share() string               { return c.Session.Share() }

func (c *longCall) SendInner(r *host.Request, to *surface.Target) {
	request{c.session, r}.handleOfLong(to)
}

func (c *longCall) Inner(r *host.Request) surface.Session {
	return &toolCall{request: request{c.session, r}}
}

func (c *longCall) ReplyWithin(result json.RawMessage, most int) {
	s := c.session
	c.Reply(results.OfTexts(result, func(texts json.RawMessage) json.RawMessage {
		return s.shorten(texts, &catalog.Tool{MaxOutputChars: most}, s.Surface().ReadsOn)
	}), nil)
}

// A parkedCall waits for the answers of its host.
type parkedCall struct {
	surface.Parked
	session *sessions.Session
}

func (c *longCall) Park(what surface.Parked, questions json.RawMessage) {
	agg := c.agg
	id, spare, full := agg.parked.Add(parkedCall{what, c.session.Session}, agg, c.Account, c.r)
	if full {
		agg.log.Warn("too many calls wait for their hosts to answer, one is given up")
		spare.Abandon(nil)
	}
	state := agg.calls.States.Seal(ask.State{Call: id, Principal: c.User, Request: ask.Digest(c.r.Method, c.params)})
	c.r.Reply(fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":%s,"requestState":%s}`, questions, wire.Quote(state)), nil)
}

func (c *longCall) Resume() (what surface.Parked, answers json.RawMessage, over bool) {
	raw, responses, err := wire.GetStrict(c.params, "requestState", "inputResponses")
	if err == nil && raw == nil {
		return nil, nil, false
	}
	text, _ := wire.Text(raw)
	state, ours := c.agg.calls.States.Open(text)
	ours = ours && err == nil && state.Principal == c.User && state.Request == ask.Digest(c.r.Method, c.params) && time.Now().Unix() <= state.Expires
	if ours {
		if parked, ok := c.agg.parked.Take(state.Call); ok {
			return parked.Parked, responses, false
		}
	}
	c.r.Reply(nil, ask.Stale())
	return nil, nil, true
}

// dropParked gives up the calls of a session that wait for answers to the request by; nil is any request
// of the session.
func (a *Aggregator) dropParked(s *sessions.Session, reason json.RawMessage, by func(r *host.Request) bool) {
	a.parked.Abandon(reason, func(c parkedCall, r *host.Request) bool { return c.session == s && (by == nil || by(r)) })
}
