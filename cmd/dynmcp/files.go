package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// An editedFile is a file that a verb changes as a whole. Whoever reads it
// meanwhile, or after a crash, sees the old text or the new one, never a part.
type editedFile struct {
	// path is where the text is: behind a symbolic link, what it leads to.
	path string
	// link is the symbolic link that was named, empty when it was none.
	link string
	// old is the text that was read, nil when there was no file.
	old  []byte
	mode fs.FileMode
}

// openEdited reads a file that is to be changed, or finds that there is none.
func openEdited(path string) (*editedFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &editedFile{path: path}
	if err := f.followLink(); err != nil {
		return nil, err
	}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, hinted(fmt.Errorf("%s is a directory", path), "name the file in it")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f.mode = info.Mode().Perm()
	f.old, err = os.ReadFile(f.path)
	if f.old == nil && err == nil {
		f.old = []byte{}
	}
	return f, err
}

// followLink makes path what a symbolic link leads to: the link stays a link.
func (f *editedFile) followLink() error {
	info, err := os.Lstat(f.path)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return nil // what is wrong with the path is said when it is read
	}
	target, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return hinted(fmt.Errorf("%s is a symbolic link to a file that is not there", f.path), "make that file or remove the link")
	}
	f.link, f.path = f.path, target
	return err
}

func (f *editedFile) exists() bool { return f.old != nil }

// name is the path as it was given, with what a link leads to.
func (f *editedFile) name() string {
	if f.link != "" {
		return f.link + " -> " + f.path
	}
	return f.path
}

func (f *editedFile) backup() string { return f.path + ".bak" }

// write replaces the text. What was there is kept beside it first.
func (f *editedFile) write(text []byte) error {
	unlock, err := lockFile(f.path)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := os.ReadFile(f.path)
	if changed := err == nil && (!f.exists() || !bytes.Equal(now, f.old)); changed {
		return hinted(fmt.Errorf("%s has changed meanwhile", f.path), "nothing was written; try again")
	}
	if f.exists() {
		if err := replaceFile(f.backup(), f.old, f.mode); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return replaceFile(f.path, text, f.mode)
}

// A lock that is older than staleLock belongs to a run that was killed; one that
// stays for lockPatience is told about.
const (
	staleLock    = 10 * time.Second
	lockPatience = 3 * time.Second
)

// lockFile keeps other runs of dynmcp from writing between our last look at a
// file and its replacement: of two at once, one would be lost.
func lockFile(path string) (unlock func(), err error) {
	lock := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	for end := time.Now().Add(lockPatience); ; time.Sleep(10 * time.Millisecond) {
		file, err := os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newFileMode)
		if err == nil {
			_ = file.Close() // only its name matters
			return func() { _ = os.Remove(lock) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if info, err := os.Stat(lock); err == nil && time.Since(info.ModTime()) > staleLock {
			_ = os.Remove(lock)
			continue
		}
		if time.Now().After(end) {
			return nil, hinted(fmt.Errorf("another dynmcp is writing %s", path), "if none is, remove %s", lock)
		}
	}
}

// newFileMode is what programs make files with; the user's umask narrows it.
const newFileMode = 0o666

// replaceFile writes a file beside the path and renames it into place, which
// is one step for everybody else. A mode of 0 is a new file's.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	dir := filepath.Dir(path)
	temporary := filepath.Join(dir, "."+filepath.Base(path)+"."+rand.Text()[:8])
	if err := writeSynced(temporary, text, mode); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return syncDir(dir)
}

func writeSynced(path string, text []byte, mode fs.FileMode) error {
	create := mode
	if mode == 0 {
		create = newFileMode
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

// syncDir makes a rename last through a loss of power.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be opened there
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
