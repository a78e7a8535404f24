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

	"github.com/rogpeppe/go-internal/lockedfile"
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
	return f, f.read()
}

func (f *editedFile) read() error {
	f.old, f.mode = nil, 0
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return hinted(fmt.Errorf("%s is a directory", f.path), "name the file in it")
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.path)
	}
	f.mode = info.Mode().Perm()
	f.old, err = os.ReadFile(f.path)
	if f.old == nil && err == nil {
		f.old = []byte{}
	}
	return err
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

// write replaces the text that was read, unless it has changed since. What was
// there is kept beside it.
func (f *editedFile) write(text []byte) error {
	read, existed := f.old, f.exists()
	unlock, err := f.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if f.exists() && !(existed && bytes.Equal(f.old, read)) {
		return hinted(fmt.Errorf("%s has changed meanwhile", f.path), "nothing was written; try again")
	}
	return f.replace(text)
}

// replace is write for a file that is locked.
func (f *editedFile) replace(text []byte) error {
	if f.exists() {
		if err := replaceFile(f.backup(), f.old, f.mode); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return replaceFile(f.path, text, f.mode)
}

// lock keeps other runs of dynmcp from changing the file until unlock is called,
// and reads it again: of two changes made to the same text one would be lost.
//
// The lock is the system's, so a run that is killed leaves none. It is on a file
// beside the one that is changed, because that is replaced by another.
func (f *editedFile) lock() (unlock func(), err error) {
	path := filepath.Join(filepath.Dir(f.path), "."+filepath.Base(f.path)+".lock")
	tell := time.AfterFunc(lockPatience, func() {
		fmt.Fprintf(os.Stderr, "dynmcp: waiting for another dynmcp that is changing %s\n", f.path)
	})
	defer tell.Stop()
	for {
		file, err := lockedfile.Edit(path)
		if err != nil {
			return nil, err
		}
		unlock = func() {
			_ = os.Remove(path) // fails on Windows while the file is open: there it stays
			_ = file.Close()
		}
		// Whoever held the lock removed the file. A lock on that keeps nobody out.
		if info, err := file.Stat(); err == nil && isAt(info, path) {
			if err := f.read(); err != nil {
				unlock()
				return nil, err
			}
			return unlock, nil
		}
		_ = file.Close()
	}
}

func isAt(file fs.FileInfo, path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(file, info)
}

// lockPatience is how long another run may hold the lock before the user is told.
const lockPatience = time.Second

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
