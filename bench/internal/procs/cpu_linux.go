package procs

import (
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the CPU time that all threads of a process have used.
func CPU(pid int) time.Duration {
	var ts unix.Timespec
	const schedClock = 2 // of a process, CPUCLOCK_SCHED: what clock_getcpuclockid returns
	if unix.ClockGettime(int32(^pid)<<3|schedClock, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
