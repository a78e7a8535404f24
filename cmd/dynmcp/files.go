package main

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

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/dynmcp/dynmcp/cmd/dynmcp/internal/terminal"
	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
	"github.com/dynmcp/dynmcp/schema"
)

// An editedFile is a file that a verb replaces as a whole. Readers see the old text or
// the new one, never a part, also after a crash.
type editedFile struct {
	path string // where the text is: the target of a symbolic link
	link string // the symbolic link that was named, empty if it was none
	old  []byte // the text that was read, nil if there was no file

	mode    fs.FileMode // of the file
	newMode fs.FileMode // of a file that is made; 0 leaves it to the user's umask

	keepAll bool // a backup is never overwritten
}

// openConfig reads the config file that is named, or else the one found in the
// working directory, to edit it.
func openConfig(path string) (*editedFile, error) {
	if path == "" {
		found, err := schema.Find(".")
		if err != nil {
			return nil, err
		}
		path = found
	}
	file, err := openEdited(path)
	if err == nil && !file.exists() {
		return nil, hinted(messageError("Config file not found: "+file.path), "create it with: dynmcp init --path %s", path)
	}
	return file, err
}

// lockConfig is openConfig for a verb that is about to change the file.
func lockConfig(path string) (file *editedFile, unlock func(), err error) {
	if file, err = openConfig(path); err == nil {
		unlock, err = file.lock()
	}
	return file, unlock, err
}

// openEdited reads a file that is to be changed, or finds that there is none.
func openEdited(path string) (*editedFile, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &editedFile{path: path}
	// A symbolic link stays one, and its target is changed. Any other error of the
	// path is reported when it is read.
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		target, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, hinted(fmt.Errorf("%s is a symbolic link to a file that does not exist", path), "create that file or remove the link")
		}
		if err != nil {
			return nil, err
		}
		f.link, f.path = path, target
	}
	return f, f.read()
}

func (f *editedFile) read() error {
	f.old, f.mode = nil, f.newMode
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return hinted(fmt.Errorf("%s is a directory", f.path), "name a file in it")
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", f.path)
	}
	f.mode = info.Mode().Perm()
	f.old, err = regular.Read(context.Background(), f.path, regular.Large)
	if f.old == nil && err == nil {
		f.old = []byte{}
	}
	return err
}

func (f *editedFile) exists() bool { return f.old != nil }

// name returns the path as it was given, with the target of a link.
func (f *editedFile) name() string {
	if f.link != "" {
		return f.link + " -> " + f.path
	}
	return f.path
}

// backup returns where the old text is kept. With keepAll that is the first of .bak,
// .bak.1, .bak.2 … that is free or has this very text.
func (f *editedFile) backup() string {
	path := f.path + ".bak"
	for i := 1; f.keepAll; i++ {
		text, err := regular.Read(context.Background(), path, regular.Large)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(text, f.old) {
			break
		}
		path = fmt.Sprintf("%s.bak.%d", f.path, i)
	}
	return path
}

// backups returns the texts that are kept beside a file with keepAll, the oldest
// first.
func (f *editedFile) backups() [][]byte {
	var all [][]byte
	for i := 0; ; i++ {
		path := f.path + ".bak"
		if i > 0 {
			path = fmt.Sprintf("%s.bak.%d", f.path, i)
		}
		text, err := regular.Read(context.Background(), path, regular.Large)
		if err != nil {
			return all
		}
		all = append(all, text)
	}
}

// write replaces the text that was read, unless it has changed since. The old text
// is kept in a file beside it.
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
		if err := atomicfile.Replace(f.backup(), f.old, f.mode); err != nil {
			return fmt.Errorf("keep the old file: %w", err)
		}
	}
	return atomicfile.Replace(f.path, text, f.mode)
}

// lockPatience is how long another run may hold the lock before the user is told.
const lockPatience = time.Second

// lock keeps other runs of dynmcp from changing the file until unlock is called,
// and reads it again: of two changes made to the same text one would be lost.
//
// The operating system holds the lock, so a run that is killed leaves none. It is
// on a file beside the one that is changed, because that one is replaced.
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
			_ = os.Remove(path)
			_ = file.Close()
			if runtime.GOOS == "windows" {
				_ = os.Remove(path) // open files stay there, this one too if another run has it
			}
		}
		// The last holder of the lock removed the file. A lock on that one would
		// exclude nobody.
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

// showDiff shows what changes in a file, without the secrets that mask hides.
func showDiff(out *terminal.Writer, name string, old, text []byte, mask func(name string, text []byte) []byte) {
	if len(old) > 0 {
		old = mask(name, old)
	}
	if len(text) > 0 {
		text = mask(name, text)
	}
	for line := range bytes.Lines(diff.Diff(name, old, name, text)) {
		switch {
		case bytes.HasPrefix(line, []byte("diff ")):
		case line[0] == '+':
			out.Paint(terminal.Green, string(line))
		case line[0] == '-':
			out.Paint(terminal.Red, string(line))
		default:
			out.Printf("%s", line)
		}
	}
}
