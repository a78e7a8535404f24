package memkv_test

import (
	"testing"

	"github.com/dynmcp/dynmcp/internal/kv/kvtest"
	"github.com/dynmcp/dynmcp/internal/kv/memkv"
)

func TestMemory(t *testing.T) {
	memory := memkv.New()
	kvtest.Run(t, func(*testing.T) kvtest.Connection { return memory.Connect() })
}
