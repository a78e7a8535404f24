//go:build unix

package store

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// foreign is how a file or directory is not ours alone.
type foreign string

func (f foreign) Error() string { return string(f) }
func (foreign) Unwrap() error   { return errForeign }

// checkOwner refuses a file or directory that others could have written, because its content
// is shown to models.
func checkOwner(info fs.FileInfo) error {
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case ok && int(stat.Uid) != os.Geteuid():
		return foreign("it belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return foreign(fmt.Sprintf("others can write to it (mode %04o)", info.Mode().Perm()))
	}
	return nil
}
