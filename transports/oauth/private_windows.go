package oauth

import (
	"fmt"
	"io/fs"
	"os"
)

// openNoFollow opens a file for reading. Links need a right there that users lack.
func openNoFollow(path string) (*os.File, error) { return os.Open(path) }

// checkPrivate refuses what is no file or directory; who can reach it is up to the
// user's profile that it is in.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return nil
}
