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

// Load starts a server unless it runs, and returns when it is listed. The error is a
// *transports.Failure if the server failed, or ctx's error if ctx ended first. A host must
// have introduced itself before, because servers are told its capabilities. The server runs
// until the aggregator closes, even if its entry has an idle timeout.
func (a *Aggregator) Load(ctx context.Context, server string) error {
	u := a.set.Get(server)
	if u == nil {
		return &UnknownServerError{Name: server}
	}
	_, _, err := u.Load(ctx) // not released: it stays
	return err
}

// NewTree returns the tree of a config, or one with a node for each server if the config
// has no tree.
func NewTree(cfg *schema.Config) *tree.Tree { return tree.Of(cfg) }

// An UnknownServerError says that a config has no such server, or has it
// disabled.
type UnknownServerError struct{ Name string }

func (e *UnknownServerError) Error() string { return "unknown server: " + e.Name }

// View returns the current catalogue.
func (a *Aggregator) View() *catalog.View {
	views := a.catalog.Views()
	if a.config().UseTool == schema.UseToolSplit {
		views = views.Split()
	}
	return views[catalog.NoTasks]
}

// Discover answers a JSONPath query (RFC 9535) over the known tools and servers, as the
// tool mcp_discover does, without a limit of size. It returns the JSON array of all matches,
// or the value itself if the query can match only one. It waits for servers that are
// starting, and loads the server if there is only one. The error says where the query is
// wrong, or why that server could not be loaded.
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

// Call sends a request to a server and returns its result unchanged. It takes each request
// that the tool mcp_call takes, such as tools/call with a tool's exposed name, or
// resources/read. A server that is not running is started first. params is a JSON object or
// nil. A tool that fails, or cannot be called, returns a result with isError and a nil
// error. An error is a JSON-RPC error of the server or of dynmcp, or that of ctx, whose end
// cancels the request.
//
// The caller declares no capabilities to servers, unless a host has declared some before.
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
	s.Host = noHost{}
	s.declare(json.RawMessage(`{}`), transports.Handshake)
	defer s.end()

	type answer struct {
		result json.RawMessage
		err    error
	}
	answered := make(chan answer, 1)
	own := innerParams(params, nil)
	r := &host.Request{
		ID: json.RawMessage(`1`), Method: method, Params: own, Meta: bytes.Clone(wire.Get(own, "_meta")), Era: transports.Handshake, Peer: noHost{}, Number: a.lastRequest.Add(1),
		Respond: func(_ *host.Request, result json.RawMessage, err error) { answered <- answer{bytes.Clone(result), err} },
	}
	defer context.AfterFunc(ctx, func() { r.Cancel(nil) })()
	s.agg.fleet.Begin(s.Session)
	request{s, r}.handleInner(browser.Target)
	select {
	case got := <-answered:
		return got.result, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// noHost is the host of a program's own calls. It drops notifications and refuses requests.
type noHost struct{}

// Notify implements transports.Peer.
func (noHost) Notify(string, json.RawMessage) {}

// Request implements transports.Peer.
func (noHost) Request(context.Context, string, json.RawMessage) func() (json.RawMessage, error) {
	return ask.NoHost("there is no host to ask")
}
