// Package atomicfile replaces files in one step.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// inUse is ERROR_SHARING_VIOLATION of Windows.
const inUse = syscall.Errno(32)

// Replace writes a temporary file and renames it to path. Readers see the old text or the
// new one, never a part, also after a crash or a loss of power. A mode of 0 is left to the user's umask.
// It removes what earlier writers of the file left when they were killed.
func Replace(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	for _, left := range Leftovers(path) {
		if info, err := os.Lstat(left); err == nil && time.Since(info.ModTime()) > writesWithin {
			_ = os.Remove(left)
		}
	}
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

// writesWithin is the time after which a temporary file is no longer being written.
const writesWithin = 10 * time.Minute

// Leftovers returns the temporary files of writers of path, which may be writing or were killed.
func Leftovers(path string) (all []string) {
	dir, name := filepath.Split(path)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		random, ok := strings.CutPrefix(e.Name(), "."+name+".")
		if ok && len(random) == 8 && strings.Trim(random, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" && e.Type().IsRegular() {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
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
