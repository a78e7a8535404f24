package aggregator

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/fleet"
	"github.com/dynmcp/dynmcp/aggregator/internal/observe"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/lazy"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A surfaceCall is a call of a tool of ours, with what its surface may ask of the session.
// It implements surface.Session.
type surfaceCall struct {
	session session
	request *host.Request
	params  json.RawMessage  // of the host's call
	own     *observe.OwnCall // nil where nobody observes, and of a part
}

func (c surfaceCall) View() *catalog.View { return c.session.View() }

func (c surfaceCall) Show(t *catalog.Tool) {
	c.session.Shown.Add(t)
	c.own.Show()
}

func (c surfaceCall) Reply(result json.RawMessage, err error) {
	c.own.End(c.session.Info, result, err)
	c.request.Reply(result, err)
}

func (c surfaceCall) Go(f func()) { c.session.agg.work.Answer(c.request, f) }

func (c surfaceCall) Wait(q surface.Question) { c.session.answer(c.request, q, true) }

func (c surfaceCall) Explain(err error) string { return c.session.inWords(c.session.reserved(err)) }

func (c surfaceCall) Asks(result json.RawMessage) bool { return ask.NeedsInput(nil, result) }

func (c surfaceCall) Forget(result json.RawMessage) { c.session.agg.calls.Forget(result) }

func (c surfaceCall) Offered(server string, retry bool) bool {
	u := c.session.agg.fleet.Get(c.session.Session, server)
	if own := c.session.agg.fleet.ExistingFor(c.session.Session, u); retry && own != nil {
		own.Readmit()
	}
	return fleet.IsOffered(u)
}

// readmitted says when a server that was given up is offered again. That load_mcp tries it
// once more is for people to know: a model would ask for it without end.
const readmitted = " It is offered again when whoever runs dynmcp reloads its config."

func (c surfaceCall) GivenUp(server string) string {
	u := c.session.agg.fleet.Get(c.session.Session, server)
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
	return fmt.Sprintf("\n%s was given up after %s, because %s.", status.Name, times, c.session.agg.reason(status.Err)) + readmitted
}

func (c surfaceCall) Send(method string, params json.RawMessage, by *surface.Target, done func(json.RawMessage, error)) {
	c.own.Pass()
	innerRequest{c.session, c.request.Inner(method, innerParams(params, c.params), done)}.handle(by)
}

func (c surfaceCall) Part(done func(json.RawMessage, error)) surface.Session {
	return surfaceCall{c.session, c.request.Inner("tools/call", innerParams(nil, c.params), done), c.params, nil}
}

func (c surfaceCall) Parallel() surface.Session {
	c.params = transports.DeleteMeta(wire.Delete(c.params, "inputResponses", "requestState"), "progressToken")
	return c
}

func (c surfaceCall) Kept(handle string, found func(whole json.RawMessage, limit int, ok bool)) {
	agg, user := c.session.agg, c.session.User
	agg.work.AnswerWithin(c.request, func(ctx context.Context) {
		whole, limit, ok := agg.results.Get(user, handle)
		if _, keeper, elsewhere := strings.Cut(handle, "-"); !ok && elsewhere && keeper != agg.opts.Replica && agg.opts.ResultOf != nil {
			whole, limit, ok = agg.opts.ResultOf(ctx, keeper, user, handle)
		}
		found(whole, limit, ok)
	})
}
