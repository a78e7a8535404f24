// Package atomicfile replaces files in one step.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// inUse is ERROR_SHARING_VIOLATION of Windows.
const inUse = syscall.Errno(32)

// Replace writes a temporary file and renames it to path. Readers see the old text or the
// new one, never a part, also after a crash or a loss of power. A mode of 0 is left to the user's umask.
func Replace(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	temporary := filepath.Join(dir, "."+filepath.Base(path)+"."+rand.Text()[:8])
	err := writeSynced(temporary, text, mode)
	if err == nil {
		err = Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return syncDir(dir)
}

// Rename is os.Rename that waits for a moment while another process has one of the files open,
// which Windows refuses.
func Rename(from, to string) error {
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(time.Millisecond) {
		err := os.Rename(from, to)
		if runtime.GOOS != "windows" || !errors.Is(err, fs.ErrPermission) && !errors.Is(err, inUse) || time.Now().After(end) {
			return err
		}
	}
}

func writeSynced(path string, text []byte, mode fs.FileMode) error {
	create := mode
	if mode == 0 {
		create = 0o666
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, create)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil && mode != 0 {
		err = file.Chmod(mode) // the umask may have narrowed it
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// syncDir makes a rename survive a loss of power.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be opened there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
