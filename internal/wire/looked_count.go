//go:build wirecount

package wire

import "sync/atomic"

// Looked is how many bytes of values were read after their message was checked.
var Looked atomic.Int64

func looked(n int) { Looked.Add(int64(n)) }
