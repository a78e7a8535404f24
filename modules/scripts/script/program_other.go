//go:build !linux

package script

import "os"

// program returns the path of this program, and the files that it needs to start.
func program() (path string, read []string, err error) {
	path, err = os.Executable()
	return path, []string{path}, err
}
