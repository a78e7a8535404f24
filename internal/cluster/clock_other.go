//go:build !linux

package cluster

import "time"

var started = time.Now()

// now is the monotonic clock. Where that stands still while the machine is suspended a
// replica takes itself for valid for up to [Validity] after it wakes up, while others may
// have taken what it held: do not suspend one.
func now() time.Duration { return time.Since(started) }
