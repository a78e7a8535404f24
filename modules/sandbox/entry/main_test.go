package entry

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.MainParallel(m, 8) }
