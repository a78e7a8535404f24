package selfhost

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
