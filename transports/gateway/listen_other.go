//go:build !unix

package gateway

import (
	"math"
	"net"
)

// refuseNew does nothing here: Close has to do.
func refuseNew(net.Listener) {}

// descriptors returns how many this process may have open.
func descriptors() int { return math.MaxInt32 }
