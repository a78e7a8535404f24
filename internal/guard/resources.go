package guard

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
)

// ErrResources is wrapped by errors of [Start] that are not the command's fault: the
// system, or a limit of this process, denies a file, a process or memory.
var ErrResources = errors.New("dynmcp is out of system resources")

// MarkResources wraps err with ErrResources if it reports a shortage in the system's
// terms. Errors of Start are already marked.
func MarkResources(err error) error {
	if slices.ContainsFunc(shortages, func(errno syscall.Errno) bool { return errors.Is(err, errno) }) {
		return fmt.Errorf("%w: %w", ErrResources, err)
	}
	return err
}
