package child

import (
	"runtime"
	"syscall"
	"unsafe"
)

// What package syscall has no names for, beside those in kernel_linux.go.
const (
	sysRestrictSelf   = 446 // landlock_restrict_self, of every architecture
	prSetNoNewPrivs   = 38
	prSetSeccomp      = 22
	prDropCapability  = 24 // from what the command may have
	lastCapability    = 63
	seccompModeFilter = 2
)

// walls are what the command may not pass, and nothing that it starts. We stay outside:
// the kernel has them by thread.
type walls struct {
	ruleset int    // a file, 0 is none
	filter  []byte // of seccomp, empty is none
}

// forkExec is syscall.ForkExec within the walls.
func (w *walls) forkExec(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	if w.ruleset == 0 && len(w.filter) == 0 {
		return syscall.ForkExec(path, args, attr)
	}
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err = w.raise(); err == nil {
			pid, err = syscall.ForkExec(path, args, attr)
		}
		close(started)
		select {} // the command gets Pdeathsig when the thread that started it ends
	}()
	<-started
	return pid, err
}

// keptCapabilities are those that a command of root keeps: to own and to change files
// within the walls, to signal, to change its user, and to listen on low ports.
const keptCapabilities = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<10

// raise puts the walls around this thread. Root could look over them with other
// capabilities.
func (w *walls) raise() error {
	if syscall.Geteuid() == 0 {
		for c := uintptr(0); c <= lastCapability; c++ {
			if keptCapabilities>>c&1 == 0 {
				_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prDropCapability, c, 0) // there may be fewer, or none to drop
			}
		}
	}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if w.ruleset != 0 {
		if _, _, errno := syscall.RawSyscall(sysRestrictSelf, uintptr(w.ruleset), 0, 0); errno != 0 {
			return errno
		}
	}
	if len(w.filter) == 0 {
		return nil
	}
	program := struct { // struct sock_fprog
		length uint16
		filter *byte
	}{uint16(len(w.filter) / 8), &w.filter[0]}
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)))
	return errorOf(errno)
}

// readAll reads a file to its end and closes it.
func readAll(fd int) (text []byte, err error) {
	defer func() { _ = syscall.Close(fd) }()
	buffer := make([]byte, 4096)
	for {
		n, err := again(func() (int, error) { return syscall.Read(fd, buffer) })
		if n <= 0 || err != nil {
			return text, err
		}
		text = append(text, buffer[:n]...)
	}
}
