package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a process has ended. It returns false if the process cannot be observed, as
// on kernels before 5.3.
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
