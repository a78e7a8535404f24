package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/call"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/judge"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
)

// A toolCall implements surface.Session for the tools of ours.
var _ surface.Session = (*toolCall)(nil)

func (c *toolCall) Show(t *catalog.Tool) {
	c.Shown.Add(t)
	c.observed.Show()
}

func (c *toolCall) Reply(result json.RawMessage, err error) {
	c.observed.End(c.Info, result, err)
	c.r.Reply(result, err)
}

func (c *toolCall) Go(f func()) { c.agg.work.Answer(c.r, f) }

func (c *toolCall) Wait(q surface.Question) { c.answer(q, true) }

func (c *toolCall) Explain(err error) string { return c.failureText(c.reserved(err)) }

func (c *toolCall) Asks(result json.RawMessage) bool { return ask.NeedsInput(nil, result) }

func (c *toolCall) Forget(result json.RawMessage) { c.agg.calls.Forget(result) }

func (c *toolCall) ReadsData() bool { return c.HostProfile().ReadsData }

func (c *toolCall) Offered(server string, retry bool) bool {
	u := c.agg.fleet.Get(c.Session, server)
	if own := c.agg.fleet.ExistingFor(c.Session, u); retry && own != nil {
		own.Readmit()
	}
	return fleet.IsOffered(u)
}

// readmitted says when a server that was given up is offered again. It does not say that
// load_mcp tries it once more: a model would call that without end.
const readmitted = " It is offered again after dynmcp's config is reloaded."

// GivenUp implements surface.Catalogue.
func (s session) GivenUp(server string) string {
	u := s.agg.fleet.Get(s.Session, server)
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
	return fmt.Sprintf("\n%s was given up after %s, because %s.", status.Name, times, s.agg.references.Reason(status.Err)) + readmitted
}

func (c *toolCall) Send(method string, params json.RawMessage, by *surface.Target, done func(json.RawMessage, error)) {
	c.observed.Pass()
	c.inner(method, params, done).handleInner(by)
}

func (c *toolCall) Part(done func(json.RawMessage, error)) surface.Session {
	return &toolCall{request: c.inner("tools/call", nil, done), Call: judge.Call{Params: call.Params{All: c.Params.All}}}
}

// inner returns a request inside that of the call.
func (c *toolCall) inner(method string, params json.RawMessage, done func(json.RawMessage, error)) request {
	return request{c.session, c.r.Inner(method, innerParams(params, c.Params.All), done)}
}

func (c *toolCall) Parallel() surface.Session {
	part := *c
	part.Params.All = transports.DeleteMeta(wire.Delete(c.Params.All, "inputResponses", "requestState"), "progressToken")
	return &part
}

func (c *toolCall) Kept(handle string, found func(whole json.RawMessage, limit int, ok bool)) {
	agg, user := c.agg, c.User
	agg.work.AnswerWithin(c.r, func(ctx context.Context) {
		whole, limit, ok := agg.results.Get(user, handle)
		if _, keeper, elsewhere := strings.Cut(handle, "-"); !ok && elsewhere && keeper != agg.opts.Replica && agg.opts.Cluster != nil {
			whole, limit, ok = agg.opts.Cluster.ResultOf(ctx, keeper, user, handle)
		}
		found(whole, limit, ok)
	})
}
