//go:build unix

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkOwner refuses a file or directory that others could have written: what it
// says is shown to models.
func checkOwner(info fs.FileInfo) error {
	switch stat, ok := info.Sys().(*syscall.Stat_t); {
	case ok && int(stat.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write to it (mode %04o)", info.Mode().Perm())
	}
	return nil
}
