package regular

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// nonBlocking does not block: there are no named pipes among files.
const nonBlocking = os.O_RDONLY

// open opens a file for reading. Others may replace it meanwhile, which os.Open forbids. noLink is
// ignored: on Windows, creating links needs a right that users lack.
func open(path string, _ bool) (*os.File, error) {
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	var handle windows.Handle
	name, err := windows.UTF16PtrFromString(path)
	if err == nil {
		handle, err = windows.CreateFile(name, windows.GENERIC_READ, share, nil, windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), nil
}
