//go:build unix

package regular

import (
	"os"
	"syscall"
)

// nonBlocking does not block on a named pipe.
const nonBlocking = os.O_RDONLY | syscall.O_NONBLOCK

// open opens a file for reading. It does not block on a named pipe that has taken the
// file's place.
func open(path string, noLink bool) (*os.File, error) {
	flags := nonBlocking
	if noLink {
		flags |= syscall.O_NOFOLLOW
	}
	return os.OpenFile(path, flags, 0)
}
