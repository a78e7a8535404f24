//go:build !unix

package gateway

import (
	"math"
	"net"
)

// refuseNew does nothing on this system.
func refuseNew(net.Listener) {}

// descriptors returns how many file descriptors the process may have open.
func descriptors() int { return math.MaxInt32 }
