//go:build !unix

package gateway

import "net"

// refuse does nothing here: Close has to do.
func refuse(net.Listener) {}
