package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
	"dynmcp/transports/host"
	"dynmcp/transports/upstream"
)

// patience is how long a caller waits for an upstream that is being started
// before it is told to call again: hosts give up after a minute.
const patience = 45 * time.Second

// A flight is a request on its way to an upstream and back.
type flight struct {
	upstream.Call
	agg     *Aggregator
	session *session
	request *host.Request
	peer    *peer
	asText  bool        // failures of ours are results for the model to read
	refused func(error) // takes an error in the place of the host; may be nil
	again   bool        // it was sent a second time already
	conn    *upstream.Conn
	release func()
}

// forward sends a request to an upstream as method and params, starting it if
// need be, and answers it with the upstream's answer. asText says that what
// fails on our side is answered as a result with isError.
func (a *Aggregator) forward(s *session, r *host.Request, u *lazy.Upstream, method string, params json.RawMessage, asText bool) {
	a.newFlight(s, r, u, method, params, asText).begin()
}

func (a *Aggregator) newFlight(s *session, r *host.Request, u *lazy.Upstream, method string, params json.RawMessage, asText bool) *flight {
	f := &flight{agg: a, session: s, request: r, peer: a.peerOf(u), asText: asText}
	f.Method, f.Params, f.NoToken, f.Peer, f.Done = method, params, r.Meta == nil, f, f.done
	return f
}

func (f *flight) begin() {
	if conn, release, ok := f.peer.upstream.Ready(); ok {
		f.start(conn, release)
		return
	}
	f.agg.spawnFor(f.request, f.acquire)
}

// acquire waits for the upstream and then starts.
func (f *flight) acquire() {
	u := f.peer.upstream
	ctx, cancel := context.WithCancel(f.agg.ctx)
	defer cancel()
	if !f.request.OnCancel(func(json.RawMessage) { cancel() }) {
		f.cutOff(transports.NotSent)
		return
	}
	conn, release, err := f.agg.acquire(ctx, u, u.Acquire, f.request)
	if err != nil {
		f.agg.fail(f.request, err, f.asText)
		return
	}
	f.start(conn, release)
}

// start sends the request. A cancel that comes while it is being sent is
// looked for afterwards.
func (f *flight) start(conn *upstream.Conn, release func()) {
	f.conn, f.release = conn, release
	f.Params = f.session.spokenTo(conn, f.request.Era == transports.Stateless, f.Params)
	f.peer.add(f)
	if !f.request.OnCancel(f.cancel) {
		f.land()
		f.cutOff(transports.NotSent)
		return
	}
	f.conn.Start(&f.Call)
	if !f.request.Live() {
		f.cancel(nil)
	}
}

// cancel withdraws the request: the host wants no answer any more, or we end.
func (f *flight) cancel(reason json.RawMessage) {
	if f.conn.Cancel(&f.Call, reason) {
		f.land()
		f.cutOff(transports.Unknown)
	}
}

// cutOff answers a request that our end cuts off. One that the host cancelled
// is over already, and gets no answer.
func (f *flight) cutOff(outcome transports.Outcome) {
	f.agg.fail(f.request, transports.CutOff(f.peer.upstream.Server.Name, outcome), f.asText)
}

func (f *flight) land() {
	f.peer.remove(f)
	f.release()
}

// done takes the answer, in the order of the wire.
func (f *flight) done(result json.RawMessage, err error) {
	defer answerPanic(f.request)
	f.land()
	switch {
	case err == nil:
		f.peer.shown.note(result)
		f.request.Reply(result, nil)
	case f.mayRepeat(err):
		// A call of its own: whoever started this one may not be done with it.
		again := f.agg.newFlight(f.session, f.request, f.peer.upstream, f.Method, f.Params, f.asText)
		again.refused, again.again = f.refused, true
		f.agg.spawnFor(f.request, again.acquire)
	case f.refused != nil:
		f.refused(err)
	default:
		f.agg.fail(f.request, err, f.asText)
	}
}

// mayRepeat reports whether a failed request certainly did not run because its
// connection was gone: then, and once, a new one is worth a try.
func (f *flight) mayRepeat(err error) bool {
	var failure *transports.Failure
	return !f.again && errors.As(err, &failure) && failure.Outcome == transports.NotSent && f.conn.Err() != nil
}

// Notify implements transports.Peer: the progress of this call, or what came
// on its own stream and so is for its host and no other.
func (f *flight) Notify(method string, params json.RawMessage) {
	switch {
	case concernsAll(method):
		f.peer.Notify(method, params)
		return
	case method != "notifications/message":
	case f.request.Era == transports.Stateless && !f.wantsLog():
		return
	default:
		params = f.peer.named(params)
	}
	if f.request.Peer != nil {
		f.request.Peer.Notify(method, params)
	}
}

// wantsLog reports whether a request of the stateless era asked for log messages.
func (f *flight) wantsLog() bool {
	return wire.Get(f.request.Meta, transports.MetaLogLevel) != nil
}

// Request implements transports.Peer: a question on the call's own stream is
// for the host that made the call.
func (f *flight) Request(ctx context.Context, method string, params json.RawMessage) (answer func() (json.RawMessage, error)) {
	return f.peer.ask(ctx, f.session, method, params)
}

// acquire gets a connection by way of how, u.Acquire or u.Load, but waits no
// longer than a host does. A host that gave a progress token hears that it
// goes on.
func (a *Aggregator) acquire(ctx context.Context, u *lazy.Upstream, how func(context.Context) (*upstream.Conn, func(), error), r *host.Request) (*upstream.Conn, func(), error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if token := wire.Get(r.Meta, "progressToken"); token != nil {
		stop := a.reportStart(waiting, r.Peer, token, u.Server.Name)
		defer stop()
	}
	conn, release, err := how(waiting)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil, nil, transports.CutOff(u.Server.Name, transports.NotSent)
	case errors.Is(err, lazy.ErrClosed):
		return nil, nil, &transports.Failure{
			Upstream: u.Server.Name,
			Code:     transports.CodeShuttingDown,
			Outcome:  transports.NotSent,
			Cause:    errors.New("a new config has changed or removed it"),
			Hint:     "call again",
		}
	case errors.Is(err, context.DeadlineExceeded) && waiting.Err() != nil:
		return nil, nil, &transports.Failure{
			Upstream: u.Server.Name,
			Code:     transports.CodeTimeout,
			Outcome:  transports.NotSent,
			Cause:    errors.New("it is still starting"),
			Hint:     "call again; the start goes on",
		}
	}
	return conn, release, err
}

// reportStart tells a host every few seconds that an upstream is starting. The
// function it returns ends that and waits for the end.
func (a *Aggregator) reportStart(ctx context.Context, host transports.Peer, token json.RawMessage, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(2 * time.Second)
		defer ticker.Stop()
		for n := 1; ; n++ {
			select {
			case <-ticker.C:
				host.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"message":%s}`,
					token, n, wire.Quote("starting "+name)))
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// fail answers a request that could not be forwarded. An upstream's own error
// passes as it is.
func (a *Aggregator) fail(r *host.Request, err error, asText bool) {
	var rpc *wire.Error
	var failure *transports.Failure
	isFailure := errors.As(err, &failure)
	switch {
	case !isFailure && errors.As(err, &rpc):
		r.Reply(nil, rpc)
	case asText:
		r.Reply(errorResult(explain(err)), nil)
	case isFailure:
		r.Reply(nil, failure.Wire())
	default:
		r.Reply(nil, &wire.Error{Code: transports.CodeShuttingDown, Message: err.Error()})
	}
}

// explain puts a failure in words for a model: what failed, whether the call
// ran, what to do.
func explain(err error) string {
	var evicted *lazy.EvictedError
	var failure *transports.Failure
	switch {
	case errors.As(err, &evicted) && errors.As(evicted.Err, &failure):
		return failure.Text() + fmt.Sprintf("\n%s failed to load after %d attempts and will no longer be offered.", evicted.Upstream, evicted.Attempts)
	case errors.As(err, &failure):
		return failure.Text()
	}
	return err.Error()
}

// spokenTo returns params as the era of an upstream wants them. What a host
// of the handshake era said once, the stateless one says with every request.
func (s *session) spokenTo(conn *upstream.Conn, modern bool, params json.RawMessage) json.RawMessage {
	if modern && !conn.Stateless() {
		return withoutEra(params)
	}
	s.mu.Lock()
	level := s.level
	s.mu.Unlock()
	if modern || !conn.Stateless() || level == nil {
		return params
	}
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	meta := wire.Get(params, "_meta")
	if meta == nil {
		meta = json.RawMessage(`{}`)
	}
	return wire.Set(params, "_meta", wire.Set(meta, transports.MetaLogLevel, level))
}

// withoutEra removes from params what only the stateless era puts into _meta.
func withoutEra(params json.RawMessage) json.RawMessage {
	meta := wire.Get(params, "_meta")
	if meta == nil {
		return params
	}
	kept := wire.Delete(meta, transports.EraMeta...)
	switch {
	case len(kept) == len(meta):
		return params
	case string(kept) == "{}":
		return wire.Delete(params, "_meta")
	}
	return wire.Set(params, "_meta", kept)
}
