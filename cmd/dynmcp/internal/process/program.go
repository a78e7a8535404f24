package process

import (
	"io/fs"
	"os"
)

// ProgramFile returns the file that we were started from as it is now, nil where it is not known.
func ProgramFile() fs.FileInfo {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}
