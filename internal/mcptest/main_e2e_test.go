//go:build e2e

package mcptest_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// version is the newest version of the handshake era.
const version = "2025-11-25"

// ready starts a fake and performs the handshake.
func ready(t *testing.T, args ...string) *mcptest.Host {
	t.Helper()
	h := mcptest.StartFake(t, args...)
	h.Initialize(version, nil)
	return h
}
