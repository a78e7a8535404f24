package localhttp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dynmcp/dynmcp/internal/cli/hint"
)

// maxPath is the limit of sockets on all systems: 104 bytes on macOS, including a final zero.
const maxPath = 103

// CheckPath returns an error if path is too long for a socket.
func CheckPath(path string) error {
	if len(path) > maxPath && hasSockets {
		return hint.With(fmt.Errorf("%s: the path of a socket may have %d bytes", path, maxPath), "choose a shorter one with --socket")
	}
	return nil
}

// MakePrivate creates a directory for this user's runs, writable by nobody else.
func MakePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return hint.With(err, "name a socket with --socket")
	}
	return CheckPrivate(dir)
}

// CheckPrivate checks that nobody else can write to a directory.
func CheckPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err = checkOwner(dir, info); !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return hint.With(err, "name a socket in a directory of your own with --socket")
	}
	return nil
}

// ErrLocked means that another process serves a name, or is about to.
var ErrLocked = errors.New("locked by another process")

// Lock locks a file. The system releases the lock when the process ends. The file is never removed,
// because old and new holders would lock different files.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	locked, err := lock(file)
	switch {
	case locked:
		return file, nil
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	default:
		err = ErrLocked
	}
	file.Close()
	return nil, err
}

// Announce adds a path in the directory of programs that do not know that of path. A host of them
// cannot start a run itself.
func Announce(path string) {
	dirs := Dirs()
	known := dirs[len(dirs)-1]
	if known == filepath.Dir(path) || MakePrivate(known) != nil {
		return
	}
	link := filepath.Join(known, filepath.Base(path))
	_ = os.Remove(link)
	_ = addLink(path, link)
}
