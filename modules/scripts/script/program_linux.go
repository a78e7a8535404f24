package script

import (
	"context"
	"slices"
	"strings"

	"github.com/dynmcp/dynmcp/internal/regular"
)

// program returns the path of this program, and the files that it needs to start: itself, and
// the libraries that it was linked with, of which a release has none.
func program() (path string, read []string, err error) {
	const self = "/proc/self/exe" // the file may have been replaced since we started
	maps, err := regular.Read(context.Background(), "/proc/self/maps", 16<<20)
	if err != nil {
		return "", nil, err
	}
	read = []string{self}
	for line := range strings.Lines(string(maps)) { // address, rights, offset, device, inode, path
		if fields := strings.Fields(line); len(fields) == 6 && strings.Contains(fields[1], "x") && strings.HasPrefix(fields[5], "/") {
			read = append(read, fields[5])
		}
	}
	return self, slices.Compact(read), nil
}
