package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit returns true when a process has ended, and false if it cannot be observed: on
// kernels before 5.3.
func awaitExit(pid int) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return n > 0
		}
	}
}
