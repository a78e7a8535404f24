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

	// KeepIn is the directory of the backups, which only the user may read, and of which none is overwritten;
	// "" keeps the last one, beside the file.
	KeepIn string
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

// Backup returns the path of the backup: that beside the file or, with KeepIn, the first in that directory
// that does not exist or has the old text already.
func (f *File) Backup() string {
	if f.KeepIn == "" {
		return f.Path + ".bak"
	}
	for i := 1; ; i++ {
		path := f.kept(i)
		text, err := regular.Read(context.Background(), path, regular.Large)
		if err != nil && errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(text, f.Old) {
			return path
		}
	}
}

// kept returns the path of a backup in KeepIn, of which 1 is the oldest.
func (f *File) kept(i int) string { return filepath.Join(f.KeepIn, fmt.Sprintf("%d.bak", i)) }

// BackupsBeside returns the paths of the backups beside a file, the oldest first. Older versions of dynmcp
// kept all of a host's file there.
func BackupsBeside(path string) (all []string) {
	for i := 0; ; i++ {
		backup := path + ".bak"
		if i > 0 {
			backup = fmt.Sprintf("%s.bak.%d", path, i)
		}
		if info, err := os.Lstat(backup); err != nil || !info.Mode().IsRegular() {
			return all
		}
		all = append(all, backup)
	}
}

// Backups returns the backups of a file with KeepIn, the oldest first.
func (f *File) Backups() (all [][]byte) {
	paths := BackupsBeside(f.Path)
	for i := 1; ; i++ {
		path := f.kept(i)
		if _, err := os.Lstat(path); err != nil {
			break
		}
		paths = append(paths, path)
	}
	for _, path := range paths {
		if text, err := regular.Read(context.Background(), path, regular.Large); err == nil {
			all = append(all, text)
		}
	}
	return all
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
		mode := f.Mode
		if f.KeepIn != "" {
			mode = 0o600
			if err := os.MkdirAll(f.KeepIn, 0o700); err != nil {
				return fmt.Errorf("keep the old file: %w", err)
			}
		}
		if err := atomicfile.Replace(f.Backup(), f.Old, mode); err != nil {
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
