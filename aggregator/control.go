package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/catalog"
	"dynmcp/internal/wire"
	"dynmcp/schema"
	"dynmcp/transports"
	"dynmcp/transports/host"
)

// rawResult goes through the SDK as the bytes it is.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// newServer returns the SDK server of all sessions. It negotiates versions and
// checks messages; what is answered comes from our middleware.
func (a *Aggregator) newServer() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "dynmcp", Version: a.opts.Version}, &mcp.ServerOptions{
		// The SDK only logs what it was asked to do, which we know.
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Prompts:   &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			//lint:ignore SA1019 hosts of the handshake era have it
			Logging: &mcp.LoggingCapabilities{},
		},
	})
	srv.AddReceivingMiddleware(a.control)
	return srv
}

// control answers the control plane. What it leaves to next is the SDK's.
func (a *Aggregator) control(next mcp.MethodHandler) mcp.MethodHandler {
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
		s := a.sessions.get(req.GetSession().ID())
		if s == nil {
			return nil, errors.New("the session has ended")
		}
		res, err := a.handleControl(ctx, s, r, req, next)
		replyExactly(method, r, res, err)
		return res, rpcError(err)
	}
}

// replyExactly gives the host the bytes of an answer before the SDK encodes them
// again. The handshake stays the SDK's, which waits for its end.
func replyExactly(method string, r *host.Request, res mcp.Result, err error) {
	if method == "initialize" || method == "server/discover" {
		return
	}
	var theirs *wire.Error
	switch raw, isRaw := res.(*rawResult); {
	case err == nil && isRaw:
		r.Reply(raw.raw, nil)
	case errors.As(err, &theirs):
		r.Reply(nil, theirs)
	}
}

// handleControl is the switch on the methods of the control plane. r and req are
// the same request, as it was sent and as the SDK has it.
func (a *Aggregator) handleControl(ctx context.Context, s *session, r *host.Request, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	a.learnFrom(s, r)
	switch r.Method {
	case "initialize":
		return a.initialize(ctx, s, r, req, next)
	case "server/discover":
		return a.discover(ctx, s, req, next)
	case "logging/setLevel":
		return a.setLevel(ctx, s, r, req, next)
	case "ping":
		return next(ctx, r.Method, req)
	}
	a.begin(s)
	switch r.Method {
	case "resources/subscribe":
		return a.subscribe(ctx, s, r)
	case "resources/unsubscribe":
		return a.unsubscribe(ctx, s, r)
	case "subscriptions/listen":
		return a.listen(ctx, s, r, req)
	}
	for _, which := range lists {
		if which.method == r.Method {
			return a.answerList(ctx, s, r, which)
		}
	}
	return next(ctx, r.Method, req)
}

// learnFrom keeps what a request of the stateless era says of its host.
func (a *Aggregator) learnFrom(s *session, r *host.Request) {
	if r.Era == transports.Stateless {
		s.introduce(wire.Get(r.Meta, transports.MetaClientInfo, "name"))
		a.sessions.declare(s, wire.Get(r.Meta, transports.MetaCapabilities), transports.Stateless)
	}
}

// initialize answers the handshake. In single-wrap mode it waits for the
// upstream, whose capabilities, instructions and name are the answer.
func (a *Aggregator) initialize(ctx context.Context, s *session, r *host.Request, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, r.Method, req)
	if err != nil {
		return nil, err
	}
	capabilities := wire.Get(r.Params, "capabilities")
	if !wire.IsObject(capabilities) {
		capabilities = json.RawMessage(`{}`)
	}
	s.introduce(wire.Get(r.Params, "clientInfo", "name"))
	a.sessions.declare(s, capabilities, transports.Handshake)
	a.begin(s)
	answer, ok := res.(*mcp.InitializeResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered initialize with %T", res)
	}
	if err := a.awaitSingle(ctx, s); err != nil {
		return nil, err
	}
	return &rawResult{raw: fmt.Appendf(nil, `{"protocolVersion":%s,%s}`, wire.Quote(answer.ProtocolVersion), a.introduction(s))}, nil
}

// introduction returns the members that the answers of both eras share:
// capabilities, who we are, instructions if there are any, and what else a
// wrapped server says.
func (a *Aggregator) introduction(s *session) []byte {
	view := a.viewsOf(s)[catalog.NoTasks]
	info := json.RawMessage(fmt.Appendf(nil, `{"name":"dynmcp","title":"dynmcp","version":%s}`, wire.Quote(a.opts.Version)))
	capabilities, text := a.withTasks(view.Capabilities(!view.Complete()), s), ""
	var rest json.RawMessage
	if a.exposesTo(s, schema.ExposeDiscover) {
		text = view.Instructions(maxChars(a.config()))
	} else if a.exposesTo(s, schema.ExposeTree) {
		text = NewTree(a.config()).TreeIntro(view, maxChars(a.config()))
	}
	if u := a.singleOf(s); u != nil {
		if server, ok := view.Server(u.Server.Name); ok && server.Loaded {
			rest = server.Rest
			if server.Info != nil {
				info = server.Info
			}
			if a.exposesTo(s, schema.ExposeDirect) {
				capabilities = ownCapabilities(server.Capabilities)
				if (server.Protocol >= transports.StatelessVersion) != (s.declaration().era == transports.Stateless) {
					capabilities = a.withTasks(capabilities, s)
				}
			}
			if text == "" {
				text = server.Instructions
			}
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

// ownCapabilities returns those of a wrapped server whose tools are shown as
// themselves: all that it has. That its list of tools may change is true of all
// that we show.
func ownCapabilities(capabilities json.RawMessage) json.RawMessage {
	if !wire.IsObject(capabilities) {
		capabilities = json.RawMessage(`{}`)
	}
	tools := wire.Get(capabilities, "tools")
	if !wire.IsObject(tools) {
		tools = json.RawMessage(`{}`)
	}
	return wire.Set(capabilities, "tools", wire.Set(tools, "listChanged", []byte("true")))
}

// discover answers server/discover. It starts nothing in config mode: some
// hosts probe with a process that ends at once.
func (a *Aggregator) discover(ctx context.Context, s *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, "server/discover", req)
	if err != nil {
		return nil, err
	}
	answer, ok := res.(*mcp.DiscoverResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered server/discover with %T", res)
	}
	if err := a.awaitSingle(ctx, s); err != nil {
		return nil, err
	}
	versions, err := json.Marshal(answer.SupportedVersions)
	if err != nil {
		return nil, err
	}
	raw := fmt.Appendf(nil, `{"supportedVersions":%s,%s}`, versions, a.introduction(s))
	meta := wire.Get(raw, "_meta")
	if !wire.IsObject(meta) {
		meta = []byte(`{}`)
	}
	meta = wire.Set(meta, mcp.MetaKeyServerInfo, wire.Get(raw, "serverInfo"))
	return &rawResult{raw: wire.Set(raw, "_meta", meta)}, nil
}

// answerList answers a list from the catalogue, in one page, after the eager
// upstreams had a moment to start.
func (a *Aggregator) answerList(ctx context.Context, s *session, r *host.Request, which list) (mcp.Result, error) {
	if cursor, ok := wire.Text(wire.Get(r.Params, "cursor")); ok && cursor != "" {
		return nil, invalid("%s: unknown cursor %q", which.method, cursor)
	}
	if err := a.awaitListings(ctx, s, a.startupWait(s)); err != nil {
		return nil, err
	}
	if !a.offers(s, which.capability) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s: no server has %s", which.method, which.capability)}
	}
	now := a.snapshot(s)
	view := a.shownView(s, now, which, true)
	result := now.result(which, view)
	if which.key == "tools" && a.exposesTo(s, schema.ExposeDirect) {
		s.showAll(view)
	} else if which.key == "tools" {
		a.showPinned(s, view)
	}
	if s.recordList(which.method, now.version(which, view)) {
		a.sessions.markDirty()
	}
	return &rawResult{raw: result}, nil
}

// offers reports whether a session's host is told of a capability.
func (a *Aggregator) offers(s *session, capability string) bool {
	view := a.viewsOf(s)[catalog.NoTasks]
	return wire.Get(view.Capabilities(!view.Complete()), capability) != nil
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
