package engine

import (
	"os"
	"runtime/debug"
	"syscall"
	"time"
	"unsafe"
)

// Missing describes the limits of an engine that this system cannot enforce.
func Missing() []string { return nil }

// input returns stdin, which is read through the poller: a blocking read would keep the only
// processor until the runtime notices, which costs 0.2 ms per call. It is opened before limit is
// called.
func input() *os.File {
	_ = syscall.SetNonblock(0, true)
	return os.NewFile(0, "stdin")
}

// limit sets the limits of the process for its lifetime. Without Landlock, the limit of open
// files still prevents opening any file or socket.
func limit() error {
	// The runtime opens a file of its own for the first timer.
	time.Sleep(time.Microsecond)
	limits := []struct {
		what  int
		value uint64
	}{{syscall.RLIMIT_CORE, 0}, {syscall.RLIMIT_FSIZE, 0}, {syscall.RLIMIT_NOFILE, 0}, {syscall.RLIMIT_DATA, Memory}}
	if raced() {
		limits = limits[:len(limits)-1] // the detector needs more than that
	}
	for _, l := range limits {
		if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return err
		}
	}
	return defaultAction(syscall.SIGXCPU)
}

// raced reports whether this program was built with the race detector.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return false
	}
	for _, setting := range info.Settings {
		if setting.Key == "-race" && setting.Value == "true" {
			return true
		}
	}
	return false
}

// defaultAction lets a signal end the process. The Go runtime would catch and ignore it.
func defaultAction(signal syscall.Signal) error {
	var action [8]uint64 // larger than struct sigaction; zero is SIG_DFL
	const setSize = 8
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, setSize, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// limitCPU makes the kernel end the process when it has used this much processor time since its
// start. Only the soft limit is set, which can be raised for the next script.
func limitCPU(total time.Duration) {
	var old syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_CPU, &old) == nil {
		_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: uint64((total + time.Second - 1) / time.Second), Max: old.Max})
	}
}

// used returns the processor time that we have used.
func used() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
