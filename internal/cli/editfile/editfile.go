// Package editfile replaces files of the user, mainly configs, atomically, under a lock, and with a
// backup of the old text.
package editfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/cli/hint"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// A File is a file to replace atomically: readers see the old text or the new one, never a part, even
// after a crash.
type File struct {
	Path string // path of the file itself, with symbolic links resolved
	Link string // path of the symbolic link that was opened, or ""
	Old  []byte // the text that was read, nil if there was no file

	Mode    fs.FileMode // of the file
	NewMode fs.FileMode // of a new file; 0 leaves it to the user's umask

	KeepAll bool // never overwrite a backup
}

// Open reads a file to change it. The file need not exist.
func Open(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	// A symbolic link is kept, and its target is changed. Other errors of Lstat are reported by
	// read.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, hint.With(fmt.Errorf("%s is a symbolic link to a file that does not exist", path), "create that file or remove the link")
		}
		if err != nil {
			return nil, err
		}
		f.Link, f.Path = path, target
	}
	return f, f.read()
}

func (f *File) read() error {
	f.Old, f.Mode = nil, f.NewMode
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return hint.With(fmt.Errorf("%s is a directory", f.Path), "name a file in it")
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.Path)
	}
	f.Mode = info.Mode().Perm()
	f.Old, err = regular.Read(context.Background(), f.Path, regular.Large)
	if f.Old == nil && err == nil {
		f.Old = []byte{}
	}
	return err
}

// Exists reports whether the file existed when it was read.
func (f *File) Exists() bool { return f.Old != nil }

// Name returns the path for display, with the target of a symbolic link.
func (f *File) Name() string {
	if f.Link != "" {
		return f.Link + " -> " + f.Path
	}
	return f.Path
}

// Backup returns the path of the backup. With KeepAll it is the first of .bak, .bak.1, .bak.2 … that
// does not exist or has the old text already.
func (f *File) Backup() string {
	path := f.Path + ".bak"
	for i := 1; f.KeepAll; i++ {
		text, err := regular.Read(context.Background(), path, regular.Large)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(text, f.Old) {
			break
		}
		path = fmt.Sprintf("%s.bak.%d", f.Path, i)
	}
	return path
}

// Backups returns the backups of a file with KeepAll, the oldest first.
func (f *File) Backups() [][]byte {
	var all [][]byte
	for i := 0; ; i++ {
		path := f.Path + ".bak"
		if i > 0 {
			path = fmt.Sprintf("%s.bak.%d", f.Path, i)
		}
		text, err := regular.Read(context.Background(), path, regular.Large)
		if err != nil {
			return all
		}
		all = append(all, text)
	}
}

// Write locks the file and replaces its text, with a backup of the old text. It returns an error if
// the file has changed since it was read.
func (f *File) Write(text []byte) error {
	read, existed := f.Old, f.Exists()
	unlock, err := f.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if f.Exists() && !(existed && bytes.Equal(f.Old, read)) {
		return hint.With(fmt.Errorf("%s has changed meanwhile", f.Path), "nothing was written; try again")
	}
	return f.Replace(text)
}

// Replace is Write for a locked file.
func (f *File) Replace(text []byte) error {
	if f.Exists() {
		if err := atomicfile.Replace(f.Backup(), f.Old, f.Mode); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return atomicfile.Replace(f.Path, text, f.Mode)
}

// lockPatience is the time to wait for the lock before the user is told.
const lockPatience = time.Second

// Lock locks the file against other runs of dynmcp until unlock is called, and reads it again, so
// that no change is lost. It creates the file's directory if there is none.
//
// The operating system releases the lock of a killed run. The lock is on a separate file beside this
// one, because this one is replaced.
func (f *File) Lock() (unlock func(), err error) {
	dir, name := filepath.Split(f.Path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "."+name+".lock")
	tell := time.AfterFunc(lockPatience, func() {
		fmt.Fprintf(os.Stderr, "dynmcp: waiting for another dynmcp that is changing %s\n", f.Path)
	})
	defer tell.Stop()
	for {
		file, err := lockedfile.Edit(path)
		if err != nil {
			return nil, err
		}
		unlock = func() {
			_ = os.Remove(path)
			_ = file.Close()
			if runtime.GOOS == "windows" {
				_ = os.Remove(path) // Windows does not remove open files; fails if another run has it open
			}
		}
		// The last holder may have removed the file. A lock on a removed file excludes nobody.
		held, err1 := file.Stat()
		now, err2 := os.Stat(path)
		if err1 != nil || err2 != nil || !os.SameFile(held, now) {
			_ = file.Close()
			continue
		}
		if err := f.read(); err != nil {
			unlock()
			return nil, err
		}
		return unlock, nil
	}
}
