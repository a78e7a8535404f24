package guard

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// ErrResources is in the errors of [Start] that are no fault of the command: the
// system, or a limit set for us, denies us a file, a process or memory.
var ErrResources = errors.New("dynmcp is out of system resources")

// MarkResources returns err, wrapped so that it is ErrResources if it says so in
// the system's terms. Errors of Start are marked already.
func MarkResources(err error) error {
	if isShortage(err) {
		return fmt.Errorf("%w: %w", ErrResources, err)
	}
	return err
}

func isShortage(err error) bool {
	return slices.ContainsFunc(shortages, func(errno syscall.Errno) bool { return errors.Is(err, errno) })
}
