package oauth

import (
	"fmt"
	"io/fs"
)

// checkPrivate refuses what is no file or directory; who can reach it is up to the
// user's profile that it is in.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("%s is neither a file nor a directory", path)
	}
	return nil
}
