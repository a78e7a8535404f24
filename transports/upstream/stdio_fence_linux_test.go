package upstream

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/transports"
)

// The failure of a call that was sent before the deadline of the fence has the outcome unknown
// and names the lease. On a slow machine the first deadlines may pass before the call is sent.
func TestStdioFence(t *testing.T) {
	t.Parallel()
	for away := time.Second; ; away *= 2 {
		fence, err := guard.NewFence()
		if err != nil {
			t.Fatal(err)
		}
		defer fence.Close()
		fence.Extend(time.Now().Add(away))
		c, err := tryDial(t, fake(t), ConnOptions{Fence: fence})
		if err == nil {
			_, err = tool(t, c, "sleep", `{"ms":600000}`)
		}
		var f *transports.Failure
		if errors.As(err, &f) && f.Outcome == transports.NotSent && away < patience {
			continue
		}
		f = wantFailure(t, err, transports.CodeExited, transports.Unknown)
		if !strings.Contains(f.Error(), "its replica lost the lease") {
			t.Errorf("got %v", f)
		}
		_, err = tryDial(t, fake(t), ConnOptions{Fence: fence})
		f = wantFailure(t, err, transports.CodeStartFailed, transports.NotSent)
		if !strings.Contains(f.Error(), "its replica lost the lease") {
			t.Errorf("got %v", f)
		}
		return
	}
}
