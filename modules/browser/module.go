// Package browser has the surface browser, and makes its two requests for Go programs.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dynmcp/dynmcp/aggregator"
	"github.com/dynmcp/dynmcp/aggregator/surface"
	"github.com/dynmcp/dynmcp/internal/wire"
	"github.com/dynmcp/dynmcp/module"
	"github.com/dynmcp/dynmcp/modules/browser/tools"
)

// Module has no key: expose names its surface.
var Module = module.Module{Name: "browser", Surfaces: []surface.Kind{tools.Surface}}

// A Browser makes the requests of a Go program to the servers of an aggregator, without a host.
type Browser struct{ *aggregator.Aggregator }

// Discover answers a JSONPath query (RFC 9535) over the known tools and servers, as the
// tool mcp_discover does, without a limit of size. It returns the JSON array of all matches,
// or the value itself if the query can match only one. It waits for servers that are
// starting, and loads the server if there is only one. The error says where the query is
// wrong, or why that server could not be loaded.
func (b Browser) Discover(jsonpath string) (json.RawMessage, error) {
	params := json.RawMessage(`{}`)
	if only := b.View().ServerFor(""); only != "" {
		params = wire.Set(params, "server", wire.Quote(only))
	}
	if _, err := b.Call(context.Background(), "tools/list", params); err != nil {
		return nil, err
	}
	return tools.Query(b.View(), jsonpath)
}

// Call sends a request to a server and returns its result unchanged. It takes each request
// that the tool mcp_call takes, such as tools/call with a tool's exposed name, or
// resources/read. A server that is not running is started first. params is a JSON object or
// nil. A tool that fails, or cannot be called, returns a result with isError and a nil
// error. An error is a JSON-RPC error of the server or of dynmcp, or that of ctx, whose end
// cancels the request.
//
// The caller declares no capabilities to servers, unless a host has declared some before.
func (b Browser) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	if !wire.Valid(params) {
		return nil, errors.New("params are not JSON")
	}
	method, params, err := tools.ReadRequest(wire.Set(fmt.Appendf(nil, `{"method":%s}`, wire.Quote(method)), "params", params))
	if err != nil {
		return nil, err
	}
	return b.Request(ctx, tools.Target, method, params)
}
