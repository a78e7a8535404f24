//go:build e2e && unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

const slowScript = `{"code":"await tools.alpha.sleep({ms: 600000})"}`

// One user, or one host of a run that is shared, starts all scripts that it can. Those of others run
// at once.
func TestScriptsOfOthersStart(t *testing.T) {
	t.Parallel()
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		e := fake(t, "alpha")
		run := serveUsers(t, []entry{e}, `"expose": ["discover", "script"]`, anyTool)
		ann, bob := run.client("ann", "/mcp"), run.client("bob", "/mcp")
		ann.Initialize(handshake, nil)
		bob.Initialize(handshake, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		defer calls.Wait()
		defer cancel()
		for i := range 20 {
			calls.Go(func() {
				ann.Do(ctx, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`, 100+i, mcptest.ToolParams("run_script", slowScript)))
			})
		}
		mcptest.Eventually(t, "ann has all places that she can", func() bool { return e.Count("call sleep") == 8 })
		quick(t, bob.Call)
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		e := fake(t, "alpha")
		s := newSharing(t, e)
		s.config = mcptest.Config(t, document([]entry{e}, `"expose": ["discover", "script"]`, anyTool))
		one, other := s.greet(nil), s.greet(nil)
		for range 20 {
			one.Go("tools/call", mcptest.ToolParams("run_script", slowScript))
		}
		mcptest.Eventually(t, "one host has all places that it can", func() bool { return e.Count("call sleep") == 8 })
		quick(t, other.Call)
	})
}

// quick checks that a script runs at once.
func quick(t *testing.T, call func(method string, params any) mcptest.Message) {
	t.Helper()
	began := time.Now()
	m := call("tools/call", mcptest.ToolParams("run_script", fmt.Sprintf(`{"code":%s}`, quote(`return 6 * 7`))))
	if took := time.Since(began); m.Text() != "42" || took > time.Minute {
		t.Errorf("after %v: got %s", took, m.Raw)
	}
	t.Logf("it took %v", time.Since(began))
}
