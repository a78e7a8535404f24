//go:build unix

package guard

import "time"

// grace is how long processes that a command left behind have after SIGTERM.
const grace = 500 * time.Millisecond
