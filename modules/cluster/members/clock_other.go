//go:build !linux

package members

import "time"

var started = time.Now()

// now is the monotonic clock. If it stops while the machine is suspended, a replica considers
// itself valid for up to [Validity] after it wakes up, while others may have taken its
// leases: do not suspend one.
func now() time.Duration { return time.Since(started) }
