package ledger

import "golang.org/x/sys/unix"

// Now is the time since the machine was started, in nanoseconds: the same for all of its
// processes and network namespaces, and nobody sets it.
func Now() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic(err) // every Linux has this clock
	}
	return at.Nano()
}
