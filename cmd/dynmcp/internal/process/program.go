package process

import (
	"io/fs"
	"os"
)

// ProgramFile returns the present state of the file of this program, nil if unknown.
func ProgramFile() fs.FileInfo {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	info, _ := os.Stat(path) // nil after an error
	return info
}
