package guard

import (
	"syscall"

	"golang.org/x/sys/windows"
)

var shortages = []syscall.Errno{
	windows.ERROR_TOO_MANY_OPEN_FILES,
	windows.ERROR_NOT_ENOUGH_MEMORY,
	windows.ERROR_OUTOFMEMORY,
	windows.ERROR_NO_PROC_SLOTS,
	windows.ERROR_NO_SYSTEM_RESOURCES,
	windows.ERROR_NOT_ENOUGH_QUOTA,
	windows.ERROR_COMMITMENT_LIMIT,
	windows.WSAEMFILE,
	windows.WSAENOBUFS,
}
