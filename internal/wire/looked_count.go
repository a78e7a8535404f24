//go:build wirecount

package wire

import "sync/atomic"

// Looked is the number of bytes of values that were read after their message was checked.
var Looked atomic.Int64

func looked(n int) { Looked.Add(int64(n)) }
