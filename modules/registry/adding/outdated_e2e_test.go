//go:build e2e

package adding

import (
	"bytes"
	"context"
	"testing"

	"github.com/dynmcp/dynmcp/internal/cli/terminal"
	"github.com/dynmcp/dynmcp/schema"
)

// After an interrupt, the remaining servers are not reported as failed.
func TestNewerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	pinned := schema.Server{Name: "a", Command: "npx", Args: []string{"-y", "some-mcp@1.0.0"}}
	if all, silent := Newer(ctx, terminal.New(&out), "", []schema.Server{pinned, pinned}); len(all) > 0 || silent != nil || out.Len() > 0 {
		t.Errorf("got %v, and printed %q", all, &out)
	}
}
