//go:build unix

package logins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// checkPrivate rejects a file or directory that others can access, or that the user does not
// own: its content might not be secret, or not be ours.
func checkPrivate(path string, info fs.FileInfo) error {
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case !info.Mode().IsRegular() && !info.IsDir():
		return fmt.Errorf("%s is neither a file nor a directory", path)
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", path)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be reached by others (mode %04o): chmod go= it, and log in again if it was so for long", path, info.Mode().Perm())
	}
	return nil
}

// tryLock locks a file until it is closed, and reports false if it is already locked.
func tryLock(file *os.File) (bool, error) {
	switch err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return false, nil
	default:
		return false, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
}
