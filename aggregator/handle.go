package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/forward"
	"github.com/dynmcp/dynmcp/aggregator/results"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A request is a request of a session's host.
type request struct {
	session
	r *host.Request
}

// ready notes, once for each request of the data plane, what it says of its host, and starts
// eager upstreams at the first one. It returns false if the request has to wait for a log
// level to be set: handle is called again on a goroutine then.
func (q request) ready() bool {
	if q.r.Ready {
		return true
	}
	q.r.Ready, q.r.Number = true, q.agg.lastRequest.Add(1)
	q.learn()
	q.agg.fleet.Begin(q.Session)
	raised := q.agg.fleet.RaiseLevel(q.Session, q.r)
	if raised == nil {
		return true
	}
	q.r.CopyParams()
	q.agg.work.AnswerWithin(q.r, func(ctx context.Context) {
		select {
		case <-raised:
		case <-ctx.Done():
		}
		q.handle(q.r)
	})
	return false
}

// learn keeps what a request of the stateless era declares about its host.
func (q request) learn() {
	if q.r.Era == transports.Stateless {
		q.Introduce(wire.Get(q.r.Meta, transports.MetaClientInfo, "name"))
		q.declare(wire.Get(q.r.Meta, transports.MetaCapabilities), transports.Stateless)
	}
}

// handleTogether is handle for hosts of a gateway, whose requests come on separate
// goroutines. Requests that come at once are sent to the upstream in one write.
func (s session) handleTogether(r *host.Request) {
	s.agg.cork.Delay()
	defer s.agg.cork.Release(nil)
	s.handle(r)
	runtime.Gosched()
}

// handle is the one switch on the method of a request of the data plane. It does not
// block: work that may block has its own goroutine.
func (s session) handle(r *host.Request) {
	q := request{s, r}
	if !q.ready() || r.Era == transports.Stateless && q.resumes(func() { s.handle(r) }) {
		return
	}
	switch r.Method {
	case "tools/call":
		if c := q.toolCall(nil); c != nil {
			c.send()
		}
	case "resources/read":
		if uri, ok := q.member("uri"); ok {
			if own := s.agg.opts.Extensions.Resource(s, uri); own != nil {
				q.readOwn(own)
				return
			}
			q.sendTo(s.resource(uri, r.Era), "uri")
		}
	case "prompts/get":
		if name, ok := q.member("name"); ok {
			q.sendTo(s.prompt(name), "name")
		}
	case "completion/complete":
		q.complete()
	case "tasks/get", "tasks/update", "tasks/cancel", "tasks/result", "tasks/list":
		switch u := s.Single(); {
		case u != nil:
			s.agg.calls.Dispatch(s.Session, r, forward.Route{Upstream: u, Params: r.Params})
		case r.Method == "tasks/list":
			q.listTasks()
		default:
			q.aboutTask()
		}
	default:
		// An unknown method is passed on for a host of one wrapped server, and for mcp_call,
		// which promises it.
		if s.Single() == nil {
			q.passExtension()
			return
		}
		q.passOn("")
	}
}

// member returns the string member of the params by which the request is routed. If it is
// not a string, or an upstream might read another value, member refuses the request and
// returns false.
func (q request) member(member string) (string, bool) {
	r := q.r
	raw, _, err := wire.GetStrict(r.Params, member, "_meta")
	text, ok := wire.Text(raw)
	switch {
	case err != nil:
		r.Reply(nil, transports.InvalidParams("%s: %v", r.Method, err))
	case !ok:
		r.Reply(nil, transports.InvalidParams("%s needs a string %q", r.Method, member))
	}
	return text, ok && err == nil
}

// complete sends a completion to the owner of its reference. As with member an
// upstream must not be able to read another reference than we do.
func (q request) complete() {
	r := q.r
	ref, _, err := wire.GetStrict(r.Params, "ref", "_meta")
	kind, _ := wire.Text(wire.Get(ref, "type"))
	member := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	var raw json.RawMessage
	if err == nil && member != "" {
		_, raw, err = wire.GetStrict(ref, "type", member)
	}
	name, _ := wire.Text(raw)
	var to target
	switch {
	case err != nil:
		r.Reply(nil, transports.InvalidParams("%s: %v", r.Method, err))
		return
	case member == "name":
		to = q.prompt(name)
	case member == "uri":
		to = q.resource(name, r.Era)
	default:
		r.Reply(nil, transports.InvalidParams("Unsupported completion ref type: %q", kind))
		return
	}
	to.capability = "completions"
	q.sendTo(to, "ref", member)
}

// handleNotification takes a notification of a host.
func (s session) handleNotification(method string, params json.RawMessage) {
	switch method {
	case "notifications/initialized":
		s.Recipient.Initialize()
		s.agg.changed.Set()
	case "notifications/cancelled":
		// The edge ends a request without an answer. The id may also be that of a request
		// that was answered with a question.
		id := wire.Get(params, "requestId")
		s.agg.calls.Waiting.Abandon(wire.Get(params, "reason"), func(c *call.Flight, by *host.Request) bool { return c.Session == s.Session && bytes.Equal(by.ID, id) })
		s.agg.dropParked(s.Session, wire.Get(params, "reason"), func(by *host.Request) bool { return bytes.Equal(by.ID, id) })
	case "notifications/progress":
		s.PassProgress(params)
	case "notifications/roots/list_changed":
		s.Roots.Forget()
		s.broadcast(method, params)
	default:
		if s.Single() != nil {
			s.broadcast(method, params)
		}
	}
}

// broadcast sends a notification of a session to each of its connected upstreams.
func (s session) broadcast(method string, params json.RawMessage) {
	for _, u := range s.agg.fleet.Upstreams(s.Session) {
		conn := u.Conn()
		if conn == nil || conn.Era() == transports.Stateless && method == "notifications/roots/list_changed" {
			continue // that era has no roots of a session
		}
		if method == "notifications/roots/list_changed" && s.Shared && s.agg.fleet.Of(u).Record.Entry.AsksRoots.Load() && !fleet.Isolated(&u.Server) {
			continue // the next call goes to the upstream for the new roots
		}
		if err := conn.Notify(method, params); err != nil {
			s.agg.log.Warn("notification not sent", "upstream", u.Server.Name, "method", method, "err", err)
		}
	}
}

// fail answers a request that could not be forwarded. An upstream's own error
// passes as it is.
func (q request) fail(err error, asText bool) {
	q.observeRefusal(err)
	err, r := q.reserved(err), q.r
	failure, isFailure := errors.AsType[*transports.Failure](err)
	rpc, isTheirs := errors.AsType[*wire.Error](err)
	switch {
	case isTheirs && !isFailure:
		r.Reply(nil, rpc)
	case asText:
		r.Reply(results.Error(q.failureText(err)), nil)
	case isFailure:
		r.Reply(nil, failure.Wire())
	default:
		r.Reply(nil, transports.OutcomeError(transports.CodeShuttingDown, err.Error(), transports.NotSent))
	}
}

// failureText describes a failure for a model: what failed, whether the call ran, what to
// do, and the cause as far as the host may read it.
func (s session) failureText(err error) string {
	var evicted *lazy.EvictedError
	var failure *transports.Failure
	switch {
	case errors.As(err, &evicted) && errors.As(evicted.Err, &failure):
		last := *failure
		last.Hint = strings.TrimSuffix(failure.Advice(), transports.TriesAgain)
		return last.Text() + fmt.Sprintf("\n%s failed to load after %d attempts and will no longer be offered.", evicted.Upstream, evicted.Attempts) + readmitted
	case errors.As(err, &failure):
		said := *failure
		if info, ok := s.agg.catalog.View().Server(said.Upstream); ok {
			said.Upstream = info.Called
		}
		text := said.Text()
		how := s.Surface().Text(func(t surface.Texts) string { return t.HowToLoad(failure.Upstream) })
		if how != "" && failure.Code == transports.CodeBackingOff {
			text += "\n" + how + " tries it at once."
		}
		return text
	}
	return results.NotCalled(err.Error())
}
