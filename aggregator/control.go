package aggregator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dynmcp/internal/wire"
	"dynmcp/lazy"
	"dynmcp/transports"
)

const metaSubscription = transports.MetaSubscriptionID

// rawResult goes through the SDK as the bytes it is.
type rawResult struct {
	mcp.ResultBase
	raw json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (r *rawResult) MarshalJSON() ([]byte, error) { return r.raw, nil }

// server returns the SDK server for one host. It negotiates versions and
// checks messages; what is answered comes from our middleware.
func (a *Aggregator) server() *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "dynmcp", Version: a.opts.Version}, &mcp.ServerOptions{
		// The SDK only logs what it was asked to do, which we know.
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Capabilities: &mcp.ServerCapabilities{
			Tools:     &mcp.ToolCapabilities{ListChanged: true},
			Prompts:   &mcp.PromptCapabilities{ListChanged: true},
			Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Logging:   &mcp.LoggingCapabilities{},
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
				a.log.Error("panic", "method", method, "panic", r)
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("internal error: %v", r)}
			}
		}()
		s := a.session(req.GetSession().ID())
		if s == nil {
			return nil, errors.New("the session has ended")
		}
		res, err := a.answer(ctx, s, method, req, next)
		return res, rpcError(err)
	}
}

func (a *Aggregator) answer(ctx context.Context, s *session, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	a.learnFrom(s, req)
	switch method {
	case "initialize":
		return a.initialize(ctx, s, req, next)
	case "server/discover":
		return a.discover(ctx, req, next)
	case "tools/list", "prompts/list", "resources/list", "resources/templates/list":
		a.begin()
		return a.answerList(ctx, s, method, req)
	case "resources/subscribe", "resources/unsubscribe":
		a.begin()
		return a.subscribe(ctx, s, method, req)
	case "subscriptions/listen":
		a.begin()
		return a.listen(ctx, s, req)
	case "logging/setLevel":
		return a.answerLevel(ctx, s, req, next)
	}
	return next(ctx, method, req)
}

// learnFrom keeps what a request of the stateless era says of its host.
func (a *Aggregator) learnFrom(s *session, req mcp.Request) {
	meta := wire.Get(transports.RawParams(req), "_meta")
	if capabilities := wire.Get(meta, transports.MetaCapabilities); capabilities != nil {
		a.learn(s, capabilities, true)
	}
}

// initialize answers the handshake. In single-wrap mode it waits for the
// upstream, whose capabilities, instructions and name are the answer.
func (a *Aggregator) initialize(ctx context.Context, s *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, "initialize", req)
	if err != nil {
		return nil, err
	}
	capabilities := wire.Get(transports.RawParams(req), "capabilities")
	if !wire.IsObject(capabilities) {
		capabilities = json.RawMessage(`{}`)
	}
	a.learn(s, capabilities, false)
	a.begin()
	answer, ok := res.(*mcp.InitializeResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered initialize with %T", res)
	}
	if err := a.awaitOnly(ctx); err != nil {
		return nil, err
	}
	s.start(a.digest())
	return &rawResult{raw: fmt.Appendf(nil, `{"protocolVersion":%s,%s}`, wire.Quote(answer.ProtocolVersion), a.introduction("serverInfo"))}, nil
}

// introduction returns the members that the answers of both eras share:
// capabilities, who we are and, if there are any, instructions.
func (a *Aggregator) introduction(infoKey string) []byte {
	view := a.catalog.View()
	info := fmt.Appendf(nil, `{"name":"dynmcp","title":"dynmcp","version":%s}`, wire.Quote(a.opts.Version))
	if u := a.only(); u != nil {
		if server, ok := view.Server(u.Server.Name); ok && server.Info != nil {
			info = server.Info
		}
	}
	out := fmt.Appendf(nil, `"capabilities":%s,%q:%s`, view.Capabilities(!view.Complete()), infoKey, info)
	if text := view.Instructions(maxChars(a.config())); text != "" {
		out = fmt.Appendf(out, `,"instructions":%s`, wire.Quote(text))
	}
	return out
}

// awaitOnly waits for the upstream of single-wrap mode.
func (a *Aggregator) awaitOnly(ctx context.Context) error {
	u := a.only()
	if u == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	_, release, err := u.Acquire(ctx)
	var fatal *FatalError
	switch cause := context.Cause(a.ctx); {
	case err == nil:
		release()
		return nil
	case errors.As(cause, &fatal):
		return fatal.Err
	}
	return err
}

// discover answers server/discover. It starts nothing in config mode: some
// hosts probe with a process that ends at once.
func (a *Aggregator) discover(ctx context.Context, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	res, err := next(ctx, "server/discover", req)
	if err != nil {
		return nil, err
	}
	answer, ok := res.(*mcp.DiscoverResult)
	if !ok {
		return nil, fmt.Errorf("the SDK answered server/discover with %T", res)
	}
	if err := a.awaitOnly(ctx); err != nil {
		return nil, err
	}
	versions, err := json.Marshal(answer.SupportedVersions)
	if err != nil {
		return nil, err
	}
	body := a.introduction("serverInfo")
	info := wire.Get(append(append([]byte{'{'}, body...), '}'), "serverInfo")
	return &rawResult{raw: fmt.Appendf(nil, `{"supportedVersions":%s,%s,"_meta":{%q:%s}}`, versions, body, mcp.MetaKeyServerInfo, info)}, nil
}

// answerList answers a list from the catalogue, in one page, after the eager
// upstreams had a moment to start.
func (a *Aggregator) answerList(ctx context.Context, s *session, method string, req mcp.Request) (mcp.Result, error) {
	if cursor, ok := wire.Text(wire.Get(transports.RawParams(req), "cursor")); ok && cursor != "" {
		return nil, invalid("%s: unknown cursor %q", method, cursor)
	}
	if err := a.awaitListings(ctx); err != nil {
		return nil, err
	}
	if capability := listCapability[method]; !a.offers(capability) {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("%s: no server has %s", method, capability)}
	}
	list := a.listed(method)
	s.read(method, list)
	return &rawResult{raw: list}, nil
}

var listCapability = map[string]string{
	"tools/list":               "tools",
	"prompts/list":             "prompts",
	"resources/list":           "resources",
	"resources/templates/list": "resources",
}

// offers reports whether hosts are told of a capability.
func (a *Aggregator) offers(capability string) bool {
	view := a.catalog.View()
	return wire.Get(view.Capabilities(!view.Complete()), capability) != nil
}

// levels are those of log messages (MCP, "Logging").
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// answerLevel passes the log level on to every upstream that logs.
func (a *Aggregator) answerLevel(ctx context.Context, s *session, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if !a.offers("logging") {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "no server has logging"}
	}
	params := transports.RawParams(req)
	if level, _ := wire.Text(wire.Get(params, "level")); !slices.Contains(levels, level) {
		return nil, invalid("unknown log level %q; want one of %s", level, strings.Join(levels, ", "))
	}
	s.mu.Lock()
	s.level = wire.Get(params, "level")
	s.mu.Unlock()
	a.setLevel(params)
	return next(ctx, "logging/setLevel", req)
}

// subscribe passes a subscription on to the owner of the resource.
func (a *Aggregator) subscribe(ctx context.Context, s *session, method string, req mcp.Request) (mcp.Result, error) {
	params := transports.RawParams(req)
	uri, _ := wire.Text(wire.Get(params, "uri"))
	how := (*transports.Conn).Subscribe
	if method == "resources/unsubscribe" {
		how = (*transports.Conn).Unsubscribe
	}
	if err := a.subscribeTo(ctx, uri, params, how); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if method == "resources/subscribe" {
		s.subscribed[uri] = true
	} else {
		delete(s.subscribed, uri)
	}
	return &rawResult{raw: json.RawMessage(`{}`)}, nil
}

// subscribeTo has a resource's owner do something about a subscription, or else
// the first upstream that does not refuse to.
func (a *Aggregator) subscribeTo(ctx context.Context, uri string, params json.RawMessage, how func(*transports.Conn, context.Context, json.RawMessage) error) error {
	to := a.resource(uri, false)
	if to.owner() == nil && a.incomplete() {
		if err := a.awaitListings(ctx); err != nil {
			return err
		}
	}
	if u := to.owner(); u != nil {
		return a.subscribeAt(ctx, u, uri, params, how)
	}
	for _, u := range a.mayKnow(to) {
		refusal := a.subscribeAt(ctx, u, uri, params, how)
		if refusal == nil || u == a.only() {
			return refusal
		}
	}
	return a.refusal(to)
}

func (a *Aggregator) subscribeAt(ctx context.Context, u *lazy.Upstream, uri string, params json.RawMessage, how func(*transports.Conn, context.Context, json.RawMessage) error) error {
	conn, release, err := u.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := how(conn, ctx, params); err != nil {
		return err
	}
	a.peerOf(u).shown.add(uri) // so that the end of the subscription goes there too
	return nil
}

// listen keeps a stream of notifications for a host of the stateless era until
// the host cancels it (MCP 2026-07-28, "Subscriptions").
func (a *Aggregator) listen(ctx context.Context, s *session, req mcp.Request) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params.Notifications == nil {
		return nil, invalid(`subscriptions/listen needs "notifications"`)
	}
	want := params.Notifications
	id := transports.RawID(req)
	l := listen{id: id, tools: want.ToolsListChanged, prompts: want.PromptsListChanged, resources: want.ResourcesListChanged, uris: map[string]bool{}}
	var granted []string
	for _, uri := range want.ResourceSubscriptions {
		ask, err := json.Marshal(map[string]string{"uri": uri})
		if err != nil {
			return nil, err
		}
		if err := a.subscribeTo(ctx, uri, ask, (*transports.Conn).Subscribe); err != nil {
			a.log.Warn("resource not subscribed", "uri", uri, "err", err)
			continue
		}
		l.uris[uri] = true
		granted = append(granted, uri)
	}
	s.mu.Lock()
	s.listens[string(id)] = l
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listens, string(id))
		s.mu.Unlock()
	}()
	agreed, err := json.Marshal(&mcp.NotificationSubscriptions{
		ToolsListChanged: l.tools, PromptsListChanged: l.prompts, ResourcesListChanged: l.resources, ResourceSubscriptions: granted,
	})
	if err != nil {
		return nil, err
	}
	s.peer.Notify("notifications/subscriptions/acknowledged", subscribed(fmt.Appendf(nil, `{"notifications":%s}`, agreed), id))
	a.touch()
	select {
	case <-ctx.Done():
	case <-a.ctx.Done():
	}
	return &rawResult{raw: subscribed(nil, id)}, nil
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
	e := transports.AsWire(err)
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}
