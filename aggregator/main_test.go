package aggregator

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
	"github.com/dynmcp/dynmcp/internal/wire"
)

func TestMain(m *testing.M) {
	wire.OverwriteLent()
	mcptest.Main(m)
}
