package host

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// Nothing holds a request of the control plane once it is answered, however long its session lasts.
func TestAnsweredRequestsAreNotKept(t *testing.T) {
	var requests []weak.Pointer[Request] // written before the answers
	control := newControl()
	control.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if r := RequestOf(req); r != nil {
				requests = append(requests, weak.Make(r))
			}
			return next(ctx, method, req)
		}
	})
	near, far := mcptest.Pipe()
	e := testHostOn(t, near, near, far, SessionOptions{Control: control})
	e.begin("2025-11-25")
	for id := 2; id < 6; id++ {
		e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id))
		e.wait(id)
	}
	held := func(p weak.Pointer[Request]) bool { return p.Value() != nil }
	for end := time.Now().Add(patience); slices.ContainsFunc(requests, held) && time.Now().Before(end); { // goroutines that answered may still end
		runtime.GC()
	}
	for i, p := range requests {
		if r := p.Value(); r != nil {
			t.Errorf("request %d, %s, is still held", i, r.Method)
		}
	}
	if len(requests) < 5 {
		t.Errorf("there were %d requests", len(requests))
	}
}
