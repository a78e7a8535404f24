package child

import (
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A fence is a deadline that the parent extends while it may run this tree. Once it has
// passed, the tree is killed by the guard, because the parent may be stopped, or hang.
type fence struct {
	deadline *atomic.Int64   // a BootTime, in memory that the parent writes
	passed   <-chan struct{} // closed when the deadline has passed; nil if unset
}

// open maps the file that the parent shares with its guards and closes it, so that the
// command does not inherit it.
func (f *fence) open(file int) error {
	page, err := syscall.Mmap(file, 0, FenceSize, syscall.PROT_READ, syscall.MAP_SHARED)
	_ = syscall.Close(file)
	if err == nil {
		f.deadline = (*atomic.Int64)(unsafe.Pointer(&page[0]))
	}
	return err
}

// over reports whether there is a deadline that has passed.
func (f *fence) over() bool {
	return f.deadline != nil && BootTime() >= f.deadline.Load()
}

// watch closes passed when the deadline has passed. It sleeps until the deadline that it
// has read and reads it again, so that extending it costs the parent nothing per guard. The
// sleep has an absolute end, so it ends at once if the process or the whole machine was
// suspended beyond that.
func (f *fence) watch() {
	if f.deadline == nil {
		return
	}
	passed := make(chan struct{})
	f.passed = passed
	go func() {
		defer close(passed)
		for !f.over() {
			sleepUntil(f.deadline.Load())
		}
	}()
}

const clockBootTime = 7

// BootTime returns the nanoseconds since the machine was started, including the time for
// which it was suspended (CLOCK_BOOTTIME).
func BootTime() int64 {
	var now syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBootTime, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

// sleepUntil returns at a BootTime, or before.
func sleepUntil(deadline int64) {
	const absolute = 1 // TIMER_ABSTIME
	until := syscall.NsecToTimespec(deadline)
	_, _, errno := syscall.Syscall6(syscall.SYS_CLOCK_NANOSLEEP, clockBootTime, absolute, uintptr(unsafe.Pointer(&until)), 0, 0, 0)
	if errno != 0 && errno != syscall.EINTR {
		time.Sleep(50 * time.Millisecond) // a kernel that cannot sleep by this clock
	}
}
