package host

import (
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestMain(m *testing.M) {
	wire.OverwriteLent()
	mcptest.Main(m)
}

// patience ends a test that hangs; nothing is measured by it.
const patience = 2 * time.Minute

func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: never", what)
	}
}
