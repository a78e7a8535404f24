//go:build !linux

package ledger

import "time"

// Now returns the time of day in nanoseconds.
func Now() int64 { return time.Now().UnixNano() }
