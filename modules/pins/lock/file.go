package lock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/dynmcp/dynmcp/internal/atomicfile"
	"github.com/dynmcp/dynmcp/internal/regular"
)

// FileName is the name of a lock file, which lies beside the config.
const FileName = "dynmcp.lock"

// largestLock is the largest lock file that is read, in bytes: some 400,000 tools.
const largestLock = 64 << 20

// FileOf returns the path of the lock file of a config, "" for "".
func FileOf(config string) string {
	if config == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(config), FileName)
}

// Files are the locations of pins.
type Files struct {
	Lock        string // the lock file; "" without a config file
	Definitions string // the directory of the definitions; "" stores none
}

// Read reads the lock file; a missing one is an empty lock. text is its content, for later
// comparison.
func (f Files) Read() (l Lock, text []byte, err error) {
	if f.Lock == "" {
		return Lock{}, nil, nil
	}
	text, err = regular.Read(context.Background(), f.Lock, largestLock)
	if errors.Is(err, fs.ErrNotExist) {
		return Lock{}, nil, nil
	}
	if err == nil {
		l, err = Parse(text)
	}
	if err != nil {
		return nil, text, fmt.Errorf("%s: %w", f.Lock, err)
	}
	return l, text, nil
}

// writing excludes other goroutines of this process, which the system's file locks do not do
// everywhere.
var writing sync.Mutex

// Update changes the lock file, unless it is broken. Other processes that change it wait.
func (f Files) Update(change func(Lock)) error {
	if f.Lock == "" {
		return errors.New("there is no config file that " + FileName + " could lie beside")
	}
	writing.Lock()
	defer writing.Unlock()
	if f.Definitions != "" {
		if err := os.MkdirAll(f.Definitions, 0o700); err != nil {
			return err
		}
		unlock, err := lockedfile.MutexAt(filepath.Join(f.Definitions, ".lock")).Lock()
		if err != nil {
			return err
		}
		defer unlock()
	}
	l, before, err := f.Read()
	if err != nil {
		return err
	}
	change(l)
	if text := l.Text(); !bytes.Equal(text, before) {
		return replace(f.Lock, text)
	}
	return nil
}

// replace writes the lock in place, and keeps its mode.
func replace(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	var mode fs.FileMode
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return atomicfile.Replace(path, text, mode)
}
