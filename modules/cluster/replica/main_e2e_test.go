//go:build e2e

package replica

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
