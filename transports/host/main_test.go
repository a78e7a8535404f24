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

// patience is how long a test waits for an event that must happen.
const patience = 2 * time.Minute

func waitFor(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: never", what)
	}
}
