package child

import (
	"syscall"
	"unsafe"
)

// Constants that package syscall lacks. The numbers are those of every architecture but
// MIPS, whose sets of signals are longer too.
const (
	prSetName      = 15
	prSetSubreaper = 36
)

// setName sets the name that ps shows.
func setName(name string) {
	text := append([]byte(name), 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(&text[0])), 0)
}

// setSubreaper makes this process inherit every descendant whose parent ends.
func setSubreaper() error {
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSubreaper, 1, 0)
	return errorOf(errno)
}

func errorOf(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
