package process

import (
	"io/fs"
	"os"
)

// ProgramFile returns the current state of the executable of this process, or nil if it is unknown.
func ProgramFile() fs.FileInfo {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	info, _ := os.Stat(path) // nil after an error
	return info
}
