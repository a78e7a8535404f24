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
