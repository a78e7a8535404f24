package host

import (
	"context"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// What initialize says of the host is known to requests that follow it, also while the control
// plane has not handled it.
func TestRequestsBehindInitializeKnowTheHost(t *testing.T) {
	handled := make(chan struct{})
	control := newControl()
	control.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			<-handled
			return next(ctx, method, req)
		}
	})
	var order []string // on the reading goroutine
	near, far := mcptest.Pipe()
	e := testHostOn(t, near, near, far, SessionOptions{
		Control:   control,
		Introduce: func(r *Request) { order = append(order, r.Method) },
		HandleRequest: func(r *Request) {
			order = append(order, r.Method)
			close(handled)
			r.Reply([]byte(`{}`), nil)
		},
	})
	e.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	e.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`)
	e.wait(2)
	if want := []string{"initialize", "tools/call"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}
