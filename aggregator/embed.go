package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator/internal/ask"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/browser"
	"github.com/dynmcp/dynmcp/aggregator/internal/surface/tree"
	"github.com/dynmcp/dynmcp/catalog"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/schema"
	"github.com/dynmcp/dynmcp/transports"
	"github.com/dynmcp/dynmcp/transports/host"
)

// Load starts a server unless it runs, and returns when it is listed, or why
// it is not: a *transports.Failure where the server is to blame, ctx's error
// where ctx ends first. A host must have introduced itself, for servers are
// told what it can do. The server stays until the aggregator closes, even
// where its entry has an idle timeout.
func (a *Aggregator) Load(ctx context.Context, server string) error {
	u := a.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, _, err := u.Load(ctx) // not released: it stays
	return err
}

// NewTree returns the tree of a config: the one that it has, or one with a node for
// each server.
func NewTree(cfg *schema.Config) *tree.Tree { return tree.Of(cfg) }

// An UnknownServerError says that a config has no such server, or has it
// disabled.
type UnknownServerError struct{ Name string }

func (e *UnknownServerError) Error() string { return "unknown MCP server: " + e.Name }

// View returns the catalogue as it is now.
func (a *Aggregator) View() *catalog.View {
	views := a.catalog.Views()
	if a.config().UseTool == schema.UseToolSplit {
		views = views.Split()
	}
	return views[catalog.NoTasks]
}

// Discover answers a JSONPath query (RFC 9535) over the tools and servers that are
// known, as the tool mcp_discover does, but whole: the JSON array of what matches, or
// the value of a query that names one. It waits for servers that are starting, and loads
// one that is the only one. The error says where the query is wrong, or why that one
// could not be loaded.
func (a *Aggregator) Discover(jsonpath string) (json.RawMessage, error) {
	params := json.RawMessage(`{}`)
	if only := a.View().ServerFor(""); only != "" {
		params = wire.Set(params, "server", wire.Quote(only))
	}
	if _, err := a.Call(a.ctx, "tools/list", params); err != nil {
		return nil, err
	}
	return browser.Query(a.catalog.View(), jsonpath)
}

// Call makes a request of the servers and returns the result as they sent it: any that
// the tool mcp_call takes, such as tools/call with a tool's exposed name, or
// resources/read. A server that is not running is started first. params is a JSON
// object or nil. A tool that fails is no error but a result with isError, and so is a
// call that could not be made; an error is a JSON-RPC error, the server's or one of
// ours, or that of ctx, whose end cancels the request.
//
// Servers are told that their host can do nothing, unless a host that can was first.
func (a *Aggregator) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return a.callAs(ctx, "", method, params)
}

func (a *Aggregator) callAs(ctx context.Context, user string, method string, params json.RawMessage) (json.RawMessage, error) {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	if !wire.Valid(params) {
		return nil, errors.New("params are not JSON")
	}
	method, params, err := browser.ReadRequest(wire.Set(fmt.Appendf(nil, `{"method":%s}`, wire.Quote(method)), "params", params))
	if err != nil {
		return nil, err
	}
	s := a.openSession(Identity{User: user, Local: true})
	s.Host = nobody{}
	s.declare(json.RawMessage(`{}`), transports.Handshake)
	defer s.end()

	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	own := innerParams(params, nil)
	r := &host.Request{
		ID: json.RawMessage(`1`), Method: method, Params: own, Meta: bytes.Clone(wire.Get(own, "_meta")), Era: transports.Handshake, Peer: nobody{}, Number: a.lastRequest.Add(1),
		Respond: func(_ *host.Request, result json.RawMessage, err error) { answered <- answer{bytes.Clone(result), err} },
	}
	defer context.AfterFunc(ctx, func() { r.Cancel(nil) })()
	s.agg.fleet.Begin(s.Session)
	innerRequest{request{s, r}}.handleBy(browser.Target)
	select {
	case got := <-answered:
		return got.result, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// nobody is the host of a program's own calls: it hears nothing and answers nothing.
type nobody struct{}

// Notify implements transports.Peer.
func (nobody) Notify(string, json.RawMessage) {}

// Request implements transports.Peer.
func (nobody) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return ask.NoHost("there is no host to ask")
}
