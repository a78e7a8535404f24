//go:build unix

package gateway

import (
	"math"

	"golang.org/x/sys/unix"
)

// descriptors returns how many this process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
