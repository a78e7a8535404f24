package aggregator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// A rawResult passes through the SDK unchanged.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// A controlServer is the SDK server of the control plane, made when it is first needed.
type controlServer struct {
	once   sync.Once
	server *mcp.Server
}

func (c *controlServer) of(a *Aggregator) *mcp.Server {
	c.once.Do(func() { c.server = newServer(a) })
	return c.server
}

// newServer returns the SDK server of all sessions. It negotiates versions and
// checks messages; our middleware answers.
func newServer(a *Aggregator) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "dynmcp", Version: a.opts.Version}, &mcp.ServerOptions{
		// The SDK would log each request.
		Logger: slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Prompts:   &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			//lint:ignore SA1019 hosts of the handshake era have it
			Logging: &mcp.LoggingCapabilities{},
		},
	})
	srv.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return control(a, next) })
	return srv
}

// control answers the control plane; next is the SDK's handler.
func control(a *Aggregator, next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (_ mcp.Result, err error) {
		defer func() {
			if r := recover(); r != nil {
				a.log.Error("panic", "method", method, "panic", r, "stack", string(debug.Stack()))
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("internal error: %v", r)}
			}
		}()
		r := host.RequestOf(req)
		if r == nil { // a notification: the SDK keeps the state of its session
			return next(ctx, method, req)
		}
		known, ok := a.sessions.Get(req.GetSession().ID())
		if !ok {
			return nil, errors.New("the session has ended")
		}
		q := &controlRequest{request{a.of(known), r}, req}
		res, err := q.handle(ctx, next)
		q.observeRefusal(err)
		err = q.reserved(err)
		replyExactly(method, r, res, err)
		return res, rpcError(err)
	}
}

// replyExactly sends the host the bytes of an answer before the SDK encodes them
// again. The handshake is left to the SDK, which waits for its end.
func replyExactly(method string, r *host.Request, res mcp.Result, err error) {
	if method == "initialize" || method == "server/discover" {
		return
	}
	if raw, isRaw := res.(*rawResult); err == nil && isRaw {
		r.Reply(raw.raw, nil)
	} else if theirs, ok := errors.AsType[*wire.Error](err); ok {
		r.Reply(nil, theirs)
	}
}

// A controlRequest is a request of the control plane, as it was sent and as the SDK read it.
type controlRequest struct {
	request
	req mcp.Request
}

// handle is the switch on the methods of the control plane; next is the SDK's handler.
func (q *controlRequest) handle(ctx context.Context, next mcp.MethodHandler) (mcp.Result, error) {
	q.learn()
	switch q.r.Method {
	case "initialize":
		return q.initialize(ctx, next)
	case "server/discover":
		return q.discover(ctx, next)
	case "logging/setLevel":
		if err := q.setLevel(ctx); err != nil {
			return nil, err
		}
		return next(ctx, q.r.Method, q.req)
	case "ping":
		return next(ctx, q.r.Method, q.req)
	}
	q.agg.fleet.Begin(q.Session)
	switch q.r.Method {
	case "resources/subscribe", "resources/unsubscribe":
		return &rawResult{raw: json.RawMessage(`{}`)}, q.subscribe(ctx)
	case "subscriptions/listen":
		return q.listen(ctx)
	}
	if which, ok := listing.Of(q.r.Method); ok {
		return q.list(ctx, which)
	}
	return next(ctx, q.r.Method, q.req)
}

// initialize answers the handshake. In single-wrap mode it waits for the
// upstream, whose capabilities, instructions and name are the answer.
func (q *controlRequest) initialize(ctx context.Context, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, q.r.Method, q.req)
	if err != nil {
		return nil, err
	}
	if !q.introduce(q.r) { // requests that follow may be handled already, as those of this host
		return nil, errHeld
	}
	q.agg.fleet.Begin(q.Session)
	answer, ok := res.(*mcp.InitializeResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered initialize with %T", res)
	}
	if err := q.awaitWrapped(ctx); err != nil {
		return nil, err
	}
	return &rawResult{raw: fmt.Appendf(nil, `{"protocolVersion":%s,%s}`, wire.Quote(answer.ProtocolVersion), q.introduction())}, nil
}

// awaitWrapped waits for the upstream of a session that is about one server.
func (q request) awaitWrapped(ctx context.Context) error {
	u := q.Single()
	if u == nil {
		return nil
	}
	release, err := wait{session: q.session}.start(ctx, nil, u, false)
	if err == nil {
		release()
	}
	return err
}

// awaitLists waits before a list of MCP is answered.
func (q request) awaitLists(ctx context.Context) error {
	return wait{session: q.session}.listed(ctx, nil, q.Single(), false)
}

// introduction returns the members that the answers of both eras share:
// capabilities, serverInfo, instructions, and the other members that a
// wrapped server sent.
func (q request) introduction() []byte {
	view := q.Plain()
	info := json.RawMessage(fmt.Appendf(nil, `{"name":"dynmcp","title":"dynmcp","version":%s}`, wire.Quote(q.agg.opts.Version)))
	capabilities, text := q.WithTasks(q.withExtensions(view.Capabilities(!view.Complete()), view)), q.Instructions()
	var rest json.RawMessage
	if u := q.Single(); u != nil {
		if server, ok := view.Server(u.Server.Name); ok && server.Loaded {
			rest = server.Rest
			if server.Info != nil {
				info = server.Info
			}
			if q.Surface().Direct {
				capabilities = ownCapabilities(server.Capabilities)
				if (server.Protocol >= transports.StatelessVersion) != (q.Declaration().Era == transports.Stateless) {
					capabilities = q.WithTasks(capabilities)
				}
			}
			text = cmp.Or(text, server.Instructions)
		}
	}
	out := fmt.Appendf(nil, `"capabilities":%s,"serverInfo":%s`, capabilities, info)
	if text != "" {
		out = fmt.Appendf(out, `,"instructions":%s`, wire.Quote(text))
	}
	for key, value := range wire.Members(rest) {
		out = append(append(append(append(out, ','), key...), ':'), value...)
	}
	return out
}

// ownCapabilities returns the capabilities of a wrapped server whose tools are shown as
// themselves. tools.listChanged is added, because dynmcp sends that notification.
func ownCapabilities(capabilities json.RawMessage) json.RawMessage {
	tools := object(wire.Get(capabilities, "tools"))
	return wire.Set(object(capabilities), "tools", wire.Set(tools, "listChanged", []byte("true")))
}

// object returns a value if it is an object, otherwise an empty one.
func object(value json.RawMessage) json.RawMessage {
	if wire.IsObject(value) {
		return value
	}
	return json.RawMessage(`{}`)
}

// discover answers server/discover. It starts nothing in config mode: some
// hosts probe with a process that ends at once.
func (q *controlRequest) discover(ctx context.Context, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, q.r.Method, q.req)
	if err != nil {
		return nil, err
	}
	answer, ok := res.(*mcp.DiscoverResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered server/discover with %T", res)
	}
	if err := q.awaitWrapped(ctx); err != nil {
		return nil, err
	}
	versions, err := json.Marshal(answer.SupportedVersions)
	if err != nil {
		return nil, err
	}
	raw := fmt.Appendf(nil, `{"supportedVersions":%s,%s}`, versions, q.introduction())
	meta := wire.Set(object(wire.Get(raw, "_meta")), mcp.MetaKeyServerInfo, wire.Get(raw, "serverInfo"))
	return &rawResult{raw: wire.Set(raw, "_meta", meta)}, nil
}

// list answers a list from the catalogue, in one page, after awaitLists.
func (q *controlRequest) list(ctx context.Context, which listing.List) (mcp.Result, error) {
	if cursor, ok := wire.Text(wire.Get(q.r.Params, "cursor")); ok && cursor != "" {
		return nil, transports.InvalidParams("%s: unknown cursor %q", which.Method, cursor)
	}
	if err := q.awaitLists(ctx); err != nil {
		return nil, err
	}
	if !q.Offers(which.Capability) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s: no server has %s", which.Method, which.Capability)}
	}
	now := q.Snapshot()
	content, tasks := q.Reading(now, true)(which), q.FollowedTasks()
	view := content.Views[tasks]
	result := content.Result(which, tasks)
	if which.Key == "tools" && q.Surface().Direct {
		q.Shown.AddList(view)
	} else if which.Key == "tools" {
		shown := slices.Clip(q.agg.config().Pin)
		for _, t := range q.AddedTools(view) {
			if t.Of != nil {
				shown = append(shown, t.Of.Name)
			}
		}
		q.Shown.AddPinned(shown, view, view != q.View())
	}
	if q.Recipient.Read(now, tasks, which, content) {
		q.agg.changed.Set()
	}
	return &rawResult{raw: result}, nil
}

// rpcError returns err in the form in which the SDK keeps code and data.
func rpcError(err error) error {
	if err == nil {
		return nil
	}
	var theirs *jsonrpc.Error
	var fatal *FatalError
	if errors.As(err, &theirs) && !errors.As(err, &fatal) {
		return err
	}
	e := transports.WireError(err)
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}
