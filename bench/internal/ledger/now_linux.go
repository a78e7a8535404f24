package ledger

import "golang.org/x/sys/unix"

// Now returns the time since the boot of the machine, in nanoseconds. It is the same for all processes
// and network namespaces, and is never set.
func Now() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		panic(err) // every Linux has this clock
	}
	return at.Nano()
}
