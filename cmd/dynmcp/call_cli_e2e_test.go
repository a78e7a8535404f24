//go:build e2e

package main_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// An answer within the server's limit is printed whole, however long it is.
func TestCallPrintsLongAnswers(t *testing.T) {
	t.Parallel()
	const size = 20_000_000
	some := fake(t, "some").with("max_message_bytes", 2*size)
	cmd := exec.Command(mcptest.Dynmcp(t), "call", "some/fault", fmt.Sprintf("mode=huge:%d", size), "-c", mcptest.Config(t, document([]entry{some})))
	cmd.Env = mcptest.Environ(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || len(out) < size {
		t.Errorf("got %d bytes, %v, %s", len(out), err, &stderr)
	}
}
