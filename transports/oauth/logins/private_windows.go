package logins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// checkPrivate rejects anything but files and directories; access depends on the user's profile
// that contains it.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return nil
}

// tryLock locks a file until it is closed, and reports false if it is already locked.
func tryLock(file *os.File) (bool, error) {
	const exclusively, all = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY, ^uint32(0)
	switch err := windows.LockFileEx(windows.Handle(file.Fd()), exclusively, 0, all, all, new(windows.Overlapped)); {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	default:
		return false, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
}
