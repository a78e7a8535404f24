//go:build unix

package regular

import (
	"os"
	"syscall"
)

// open opens a file for reading. It does not block on a named pipe that has taken the
// file's place.
func open(path string, noLink bool) (*os.File, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if noLink {
		flags |= syscall.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0)
}
