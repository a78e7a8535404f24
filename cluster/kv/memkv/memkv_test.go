package memkv_test

import (
	"testing"

	"dynmcp/cluster/kv/kvtest"
	"dynmcp/cluster/kv/memkv"
)

func TestMemory(t *testing.T) {
	memory := memkv.New()
	kvtest.Run(t, func(*testing.T) kvtest.Connection { return memory.Connect() })
}
