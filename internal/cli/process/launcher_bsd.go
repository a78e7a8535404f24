//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"errors"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a process has ended. It returns false if the process cannot be observed.
func awaitExit(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	var event unix.Kevent_t
	unix.SetKevent(&event, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	event.Fflags = unix.NOTE_EXIT
	changes := []unix.Kevent_t{event}
	for {
		events := make([]unix.Kevent_t, 1)
		n, err := unix.Kevent(queue, changes, events, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			changes = nil // the event is registered already
		case err != nil:
			return errors.Is(err, unix.ESRCH)
		case n > 0 && events[0].Flags&unix.EV_ERROR != 0: // the event was not registered
			return unix.Errno(events[0].Data) == unix.ESRCH
		default:
			return n > 0
		}
	}
}
