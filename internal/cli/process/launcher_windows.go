package process

import (
	"errors"

	"golang.org/x/sys/windows"
)

// awaitExit waits until a process has ended. It returns false if the process cannot be observed.
func awaitExit(pid int) bool {
	process, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_INVALID_PARAMETER) // there is no such process
	}
	defer windows.CloseHandle(process)
	event, err := windows.WaitForSingleObject(process, windows.INFINITE)
	return err == nil && event == windows.WAIT_OBJECT_0
}
