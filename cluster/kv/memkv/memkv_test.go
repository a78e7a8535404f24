package kv_test

import (
	"testing"

	"dynmcp/cluster/kv"
	"dynmcp/cluster/kv/kvtest"
)

func TestMemory(t *testing.T) {
	memory := kv.NewMemory()
	kvtest.Run(t, func(*testing.T) kvtest.Connection { return memory.Connect() })
}
