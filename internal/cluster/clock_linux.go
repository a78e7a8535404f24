package cluster

import (
	"time"

	"golang.org/x/sys/unix"
)

// now is CLOCK_BOOTTIME: unlike the clock of package time it goes on while the machine
// is suspended, as those of the other replicas do.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // not reached: Linux has had it since 2.6.39
	}
	return time.Duration(t.Nano())
}
