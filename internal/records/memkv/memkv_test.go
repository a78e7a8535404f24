package memkv_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/records/kvtest"
	"github.com/dynmcp/dynmcp/internal/records/memkv"
)

func TestMemory(t *testing.T) {
	memory := memkv.New()
	kvtest.Run(t, func(*testing.T) kvtest.Connection { return memory.Connect() })
}
