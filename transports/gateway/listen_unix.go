//go:build unix

package gateway

import (
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// refuseConnections makes the system refuse new connections once all established ones are accepted,
// or after a second.
func refuseConnections(ln net.Listener) {
	conn, ok := ln.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for range 1000 {
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n == 0 || err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		_ = unix.Shutdown(int(fd), unix.SHUT_RD) // has an effect on Linux only
	})
}

// descriptors returns how many file descriptors the process may have open.
func descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || uint64(limit.Cur) > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
