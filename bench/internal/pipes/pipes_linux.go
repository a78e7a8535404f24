package pipes

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// prepare sets a pipe to blocking mode, because a thread in a system call is woken sooner than one that
// waits for the poller. With wide it enlarges the pipe.
func prepare(file *os.File, wide bool) {
	fd := file.Fd()
	if wide {
		_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, capacity)
	}
	_ = unix.SetNonblock(int(fd), false)
}

func read(file *os.File, b []byte) (int, error) {
	for {
		n, err := unix.Read(int(file.Fd()), b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func writeAll(file *os.File, parts [][]byte) error {
	for len(parts) > 0 {
		n, err := unix.Writev(int(file.Fd()), parts)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		}
		for len(parts) > 0 && n >= len(parts[0]) {
			n -= len(parts[0])
			parts = parts[1:]
		}
		if n > 0 {
			parts[0] = parts[0][n:]
		}
	}
	return nil
}
