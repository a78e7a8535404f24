//go:build e2e

package mcptest_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// TestStrictClientIsContent uses the fake with the SDK, which must not reject anything.
func TestStrictClientIsContent(t *testing.T) {
	t.Parallel()
	stdio := func(args ...string) func(*testing.T) mcp.Transport {
		return func(t *testing.T) mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command(mcptest.Fake(t), args...)}
		}
	}
	for name, c := range map[string]struct {
		transport func(*testing.T) mcp.Transport
		version   string
	}{
		"stdio old": {stdio(), "2025-11-25"},
		"stdio new": {stdio("-era", "new"), ""},
		"http old": {func(t *testing.T) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: mcptest.ServeFake(t).URL}
		}, "2025-11-25"},
		"http new": {func(t *testing.T) mcp.Transport {
			return &mcp.StreamableClientTransport{Endpoint: mcptest.ServeFake(t, "-era", "new").URL}
		}, ""},
		"sse": {func(t *testing.T) mcp.Transport {
			return &mcp.SSEClientTransport{Endpoint: mcptest.ServeFake(t, "-sse").URL}
		}, "2024-11-05"},
	} {
		t.Run(name, func(t *testing.T) {
			client := mcp.NewClient(&mcp.Implementation{Name: "strict", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), c.transport(t), &mcp.ClientSessionOptions{ProtocolVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			use(t, session)
		})
	}
}

func use(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	ctx := context.Background()
	tools, err := session.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) < 20 {
		t.Fatalf("list: %v", err)
	}
	if _, err := session.ListResources(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := session.ListPrompts(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "fake://fakemcp/text"}); err != nil {
		t.Error(err)
	}
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"a": 1}})
	if err != nil || r.Content[0].(*mcp.TextContent).Text != `{"a":1}` {
		t.Errorf("echo: %v", err)
	}
}
