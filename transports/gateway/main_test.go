package gateway

import (
	"testing"

	"dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
