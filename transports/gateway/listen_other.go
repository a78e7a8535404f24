//go:build !unix

package gateway

import (
	"math"
	"net"
)

// refuseConnections does nothing on this system.
func refuseConnections(net.Listener) {}

// descriptors returns how many file descriptors the process may have open.
func descriptors() int { return math.MaxInt32 }
