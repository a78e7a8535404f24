package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/aggregator/internal/listing"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
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
		Logger: slog.New(slog.DiscardHandler),
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
		s, ok := a.sessions.Get(req.GetSession().ID())
		if !ok {
			return nil, errors.New("the session has ended")
		}
		res, err := s.handleControl(ctx, r, req, next)
		s.observeRefusal(r, err)
		err = s.reserved(err)
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
	if raw, isRaw := res.(*rawResult); err == nil && isRaw {
		r.Reply(raw.raw, nil)
	} else if theirs, ok := errors.AsType[*wire.Error](err); ok {
		r.Reply(nil, theirs)
	}
}

// handleControl is the switch on the methods of the control plane. r and req are
// the same request, as it was sent and as the SDK has it.
func (s *session) handleControl(ctx context.Context, r *host.Request, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	s.learnFrom(r)
	switch r.Method {
	case "initialize":
		return s.initialize(ctx, r, req, next)
	case "server/discover":
		return s.discover(ctx, req, next)
	case "logging/setLevel":
		return s.setLevel(ctx, r, req, next)
	case "ping":
		return next(ctx, r.Method, req)
	}
	s.begin()
	switch r.Method {
	case "resources/subscribe", "resources/unsubscribe":
		return &rawResult{raw: json.RawMessage(`{}`)}, s.subscribe(ctx, r)
	case "subscriptions/listen":
		return s.listen(ctx, r, req)
	}
	if which, ok := listing.Of(r.Method); ok {
		return s.answerList(ctx, r, which)
	}
	return next(ctx, r.Method, req)
}

// learnFrom keeps what a request of the stateless era says of its host.
func (s *session) learnFrom(r *host.Request) {
	if r.Era == transports.Stateless {
		s.introduce(wire.Get(r.Meta, transports.MetaClientInfo, "name"))
		s.declare(wire.Get(r.Meta, transports.MetaCapabilities), transports.Stateless)
	}
}

// initialize answers the handshake. In single-wrap mode it waits for the
// upstream, whose capabilities, instructions and name are the answer.
func (s *session) initialize(ctx context.Context, r *host.Request, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, r.Method, req)
	if err != nil {
		return nil, err
	}
	capabilities := wire.Get(r.Params, "capabilities")
	if !wire.IsObject(capabilities) {
		capabilities = json.RawMessage(`{}`)
	}
	s.introduce(wire.Get(r.Params, "clientInfo", "name"))
	s.declare(capabilities, transports.Handshake)
	s.begin()
	answer, ok := res.(*mcp.InitializeResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered initialize with %T", res)
	}
	if err := s.awaitSingle(ctx); err != nil {
		return nil, err
	}
	return &rawResult{raw: fmt.Appendf(nil, `{"protocolVersion":%s,%s}`, wire.Quote(answer.ProtocolVersion), s.introduction())}, nil
}

// introduction returns the members that the answers of both eras share:
// capabilities, who we are, instructions if there are any, and what else a
// wrapped server says.
func (s *session) introduction() []byte {
	view := s.views()[catalog.NoTasks]
	info := json.RawMessage(fmt.Appendf(nil, `{"name":"dynmcp","title":"dynmcp","version":%s}`, wire.Quote(s.agg.opts.Version)))
	capabilities, text := s.agg.withTasks(view.Capabilities(!view.Complete()), s), ""
	if instructions := s.surface().Instructions; instructions != nil {
		text = instructions(view)
	}
	var rest json.RawMessage
	if u := s.single(); u != nil {
		if server, ok := view.Server(u.Server.Name); ok && server.Loaded {
			rest = server.Rest
			if server.Info != nil {
				info = server.Info
			}
			if s.surface().Direct {
				capabilities = ownCapabilities(server.Capabilities)
				if (server.Protocol >= transports.StatelessVersion) != (s.declaration().era == transports.Stateless) {
					capabilities = s.agg.withTasks(capabilities, s)
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
func (s *session) discover(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, "server/discover", req)
	if err != nil {
		return nil, err
	}
	answer, ok := res.(*mcp.DiscoverResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered server/discover with %T", res)
	}
	if err := s.awaitSingle(ctx); err != nil {
		return nil, err
	}
	versions, err := json.Marshal(answer.SupportedVersions)
	if err != nil {
		return nil, err
	}
	raw := fmt.Appendf(nil, `{"supportedVersions":%s,%s}`, versions, s.introduction())
	meta := wire.Get(raw, "_meta")
	if !wire.IsObject(meta) {
		meta = []byte(`{}`)
	}
	meta = wire.Set(meta, mcp.MetaKeyServerInfo, wire.Get(raw, "serverInfo"))
	return &rawResult{raw: wire.Set(raw, "_meta", meta)}, nil
}

// answerList answers a list from the catalogue, in one page, after the eager
// upstreams had a moment to start.
func (s *session) answerList(ctx context.Context, r *host.Request, which listing.List) (mcp.Result, error) {
	if cursor, ok := wire.Text(wire.Get(r.Params, "cursor")); ok && cursor != "" {
		return nil, invalid("%s: unknown cursor %q", which.Method, cursor)
	}
	if err := s.awaitListings(ctx); err != nil {
		return nil, err
	}
	if !s.offers(which.Capability) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s: no server has %s", which.Method, which.Capability)}
	}
	now := s.snapshot()
	content, tasks := s.reading(now, true)(which), s.followedTasks()
	view := content.Views[tasks]
	result := content.Result(which, tasks)
	if which.Key == "tools" && s.surface().Direct {
		s.shown.addList(view)
	} else if which.Key == "tools" {
		s.shown.addPinned(s.agg.config().Pin, view, view != s.view())
	}
	if s.recipient.Read(now, tasks, which, content) {
		s.agg.changed.Set()
	}
	return &rawResult{raw: result}, nil
}

// offers reports whether a session's host is told of a capability.
func (s *session) offers(capability string) bool {
	view := s.views()[catalog.NoTasks]
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
