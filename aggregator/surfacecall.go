package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/results"
	"github.com/dynmcp/dynmcp/aggregator/internal/scripts"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A surfaceCall is a call of a tool of ours. It implements surface.Session.
type surfaceCall struct {
	request
	params   json.RawMessage      // of the host's call
	observed *observe.BuiltinCall // nil without an observer, and for a part
}

func (c surfaceCall) Show(t *catalog.Tool) {
	c.Shown.Add(t)
	c.observed.Show()
}

func (c surfaceCall) Reply(result json.RawMessage, err error) {
	c.observed.End(c.Info, result, err)
	c.r.Reply(result, err)
}

func (c surfaceCall) Go(f func()) { c.agg.work.Answer(c.r, f) }

func (c surfaceCall) Wait(q surface.Question) { c.answer(q, true) }

func (c surfaceCall) Explain(err error) string { return c.failureText(c.reserved(err)) }

func (c surfaceCall) Asks(result json.RawMessage) bool { return ask.NeedsInput(nil, result) }

func (c surfaceCall) Forget(result json.RawMessage) { c.agg.calls.Forget(result) }

func (c surfaceCall) ReadsData() bool { return c.HostProfile().ReadsData }

func (c surfaceCall) Offered(server string, retry bool) bool {
	u := c.agg.fleet.Get(c.Session, server)
	if own := c.agg.fleet.ExistingFor(c.Session, u); retry && own != nil {
		own.Readmit()
	}
	return fleet.IsOffered(u)
}

// readmitted says when a server that was given up is offered again. It does not say that
// load_mcp tries it once more: a model would call that without end.
const readmitted = " It is offered again after dynmcp's config is reloaded."

func (c surfaceCall) GivenUp(server string) string {
	u := c.agg.fleet.Get(c.Session, server)
	if u == nil {
		return ""
	}
	status := u.Status()
	if status.State != lazy.Evicted {
		return ""
	}
	times := fmt.Sprintf("%d failures", status.Failures)
	if status.Failures == 1 {
		times = "1 failure"
	}
	return fmt.Sprintf("\n%s was given up after %s, because %s.", status.Name, times, c.agg.references.Reason(status.Err)) + readmitted
}

func (c surfaceCall) Send(method string, params json.RawMessage, by *surface.Target, done func(json.RawMessage, error)) {
	c.observed.Pass()
	innerRequest{c.inner(method, params, done)}.handleBy(by)
}

func (c surfaceCall) Part(done func(json.RawMessage, error)) surface.Session {
	return surfaceCall{request: c.inner("tools/call", nil, done), params: c.params}
}

// inner returns a request inside that of the call.
func (c surfaceCall) inner(method string, params json.RawMessage, done func(json.RawMessage, error)) request {
	return request{c.session, c.r.Inner(method, innerParams(params, c.params), done)}
}

func (c surfaceCall) Parallel() surface.Session {
	c.params = transports.DeleteMeta(wire.Delete(c.params, "inputResponses", "requestState"), "progressToken")
	return c
}

func (c surfaceCall) Kept(handle string, found func(whole json.RawMessage, limit int, ok bool)) {
	agg, user := c.agg, c.User
	agg.work.AnswerWithin(c.r, func(ctx context.Context) {
		whole, limit, ok := agg.results.Get(user, handle)
		if _, keeper, elsewhere := strings.Cut(handle, "-"); !ok && elsewhere && keeper != agg.opts.Replica && agg.opts.Cluster != nil {
			whole, limit, ok = agg.opts.Cluster.ResultOf(ctx, keeper, user, handle)
		}
		found(whole, limit, ok)
	})
}

func (c surfaceCall) RunScript(source string, args []string) {
	s, cfg := c.session, c.agg.config()
	var servers []string
	for _, server := range s.View().Servers() {
		servers = append(servers, server.Name)
	}
	s.agg.scripts.Start(&scripts.Caller{
		Session: s.Session, Request: c.r, Params: bytes.Clone(c.params), Config: cfg, Servers: servers, Host: scriptHost{c},
	}, source, args)
}

// A scriptHost makes the requests of the script of a call. It implements scripts.Host.
type scriptHost struct{ call surfaceCall }

func (h scriptHost) Answer(result json.RawMessage, most int) {
	s := h.call.session
	h.call.Reply(results.OfTexts(result, func(texts json.RawMessage) json.RawMessage {
		return s.shorten(texts, &catalog.Tool{MaxOutputChars: most}, s.Surface().ReadsOn)
	}), nil)
}

func (h scriptHost) Send(r *host.Request, by *surface.Target) {
	innerRequest{request{h.call.session, r}}.handleOfScript(by)
}

func (h scriptHost) Part(r *host.Request) surface.Session {
	return surfaceCall{request: request{h.call.session, r}}
}

// handleOfScript answers a request that a script makes inside that of its host. by says how
// it calls tools.
func (in innerRequest) handleOfScript(by *surface.Target) {
	if by == nil {
		in.handle(in.r)
		return
	}
	if in.r.Era == transports.Stateless && in.resumes(func() { in.handleOfScript(by) }) {
		return
	}
	if c := in.toolCall(by); c != nil {
		c.send()
	}
}
