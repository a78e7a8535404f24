//go:build linux || darwin

package box

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxLevels is how deep removeTree descends. It has a file open for each level, and each name of a
// path may have 255 bytes of the 4,096 that a path may have.
const maxLevels = 8

// removeTree removes a directory in which nothing changes any more. os.RemoveAll would open a file
// for each of its levels, and fail where a directory cannot be read.
func removeTree(root string) error {
	if _, err := os.Lstat(root); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := removeBelow(root, root, 1); err != nil {
		return fmt.Errorf("the temporary directory %s is left: %w", root, err)
	}
	return nil
}

// removeBelow removes a directory of a tree. It moves directories that are too deep into the root,
// which is read until it is empty.
func removeBelow(root, dir string, level int) error {
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	for {
		removed, err := removeFiles(root, dir, level)
		if removed && err == nil {
			continue // what was moved here meanwhile
		}
		return cmp.Or(err, os.Remove(dir))
	}
}

// removeFiles removes what is in a directory, and reports whether there was something. It goes on
// after an error, and returns the first.
func removeFiles(root, dir string, level int) (removed bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for {
		const some = 1000 // there may be millions
		entries, readErr := f.ReadDir(some)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case !e.IsDir():
				err = cmp.Or(err, os.Remove(path))
			case level < maxLevels:
				err = cmp.Or(err, removeBelow(root, path, level+1))
			default:
				err = cmp.Or(err, os.Chmod(path, 0o700), os.Rename(path, filepath.Join(root, rand.Text())))
			}
			removed = true
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return removed, err
		case readErr != nil:
			return removed, cmp.Or(err, readErr)
		}
	}
}
