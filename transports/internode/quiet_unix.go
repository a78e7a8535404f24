//go:build unix

package internode

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// quiet reports whether nothing waits to be read of a connection, nor its end.
func quiet(conn net.Conn) bool {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return false
	}
	events := 1
	_ = raw.Control(func(fd uintptr) {
		events, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	})
	return events == 0
}
