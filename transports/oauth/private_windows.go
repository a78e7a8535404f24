package oauth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// checkPrivate refuses what is no file or directory; who can reach it is up to the
// user's profile that it is in.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return nil
}

// tryLock locks a file for as long as it is open, and reports whether it did: not where
// it is locked already.
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
