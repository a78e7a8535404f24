package child

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Constants that package syscall lacks, beside those in kernel_linux.go.
const (
	sysRestrictSelf   = 446 // landlock_restrict_self, of every architecture
	prSetDumpable     = 4
	prSetNoNewPrivs   = 38
	prSetSeccomp      = 22
	seccompModeFilter = 2
)

// restrictions are the sandbox of the command and everything it starts. The guard stays outside,
// as the kernel applies it per thread.
type restrictions struct {
	ruleset  int    // a file, 0 if none
	filter   []byte // of seccomp, empty if none
	listener int    // a socket, 0 if none
}

// within calls start on a thread inside the sandbox.
func (w *restrictions) within(start func() error) (err error) {
	if w.ruleset == 0 && len(w.filter) == 0 && w.listener == 0 {
		return start()
	}
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if err = w.apply(); err == nil {
			err = start()
		}
		close(started)
		select {} // the command gets Pdeathsig when the thread that started it ends
	}()
	<-started
	return err
}

// keptCapabilities are the capabilities that a command of root keeps: to own and to change
// files within the sandbox, to signal, to change its user, and to listen on low ports.
const keptCapabilities = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<10

// capabilities are struct __user_cap_header_struct and __user_cap_data_struct, version 3.
type capabilities struct {
	version, pid uint32
	low, high    struct{ effective, permitted, inheritable uint32 }
}

// dropCapabilities leaves this thread of root only the kept capabilities: the others would let
// it bypass the sandbox. Programs that it executes cannot gain more, as new privileges are
// disabled.
func dropCapabilities() error {
	c := capabilities{version: 0x20080522}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&c)), uintptr(unsafe.Pointer(&c.low)), 0); errno != 0 {
		return errno
	}
	c.low.permitted &= keptCapabilities
	c.low.effective = c.low.permitted
	c.low.inheritable &= keptCapabilities
	c.high = struct{ effective, permitted, inheritable uint32 }{}
	_, _, errno := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&c)), uintptr(unsafe.Pointer(&c.low)), 0)
	return errorOf(errno)
}

// apply puts this thread into the sandbox. The command is in it too, so Landlock would let the
// command read our memory and files through the thread. The kernel hides those of a process
// that is not dumpable.
func (w *restrictions) apply() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		return errno
	}
	if syscall.Geteuid() == 0 {
		if err := dropCapabilities(); err != nil {
			return err
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
	if len(w.filter) > 0 {
		if err := install(unsignalled(syscall.Getpid(), syscall.Gettid())); err != nil {
			return err
		}
		if err := install(w.filter); err != nil {
			return err
		}
	}
	if w.listener != 0 {
		return w.listen()
	}
	return nil
}

// install adds a filter to this thread.
func install(filter []byte) error {
	program := programOf(filter)
	_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetSeccomp, seccompModeFilter, uintptr(unsafe.Pointer(&program)))
	return errorOf(errno)
}

// unsignalled is a filter that refuses signals to a process and to one of its threads. Landlock
// would allow them, because that thread is in the same sandbox as the command.
func unsignalled(pid, tid int) []byte {
	const (
		load, jumpIfEqual, jump, ret = 0x20, 0x15, 0x05, 0x06
		number, first, second        = 0, 16, 24 // in struct seccomp_data; the low words of arguments
		allow, refuse                = 0x7fff0000, 0x00050000 | uint32(syscall.EPERM)
		sysPidfdOpen                 = 434 // of every architecture
	)
	var filter []byte
	add := func(code uint16, yes, no uint8, k uint32) {
		filter = binary.NativeEndian.AppendUint16(filter, code)
		filter = binary.NativeEndian.AppendUint32(append(filter, yes, no), k)
	}
	add(load, 0, 0, number)
	add(jumpIfEqual, 8, 0, syscall.SYS_TGKILL)
	add(jumpIfEqual, 7, 0, syscall.SYS_RT_TGSIGQUEUEINFO)
	add(jumpIfEqual, 4, 0, syscall.SYS_KILL)
	add(jumpIfEqual, 3, 0, syscall.SYS_TKILL)
	add(jumpIfEqual, 2, 0, syscall.SYS_RT_SIGQUEUEINFO)
	add(jumpIfEqual, 1, 0, sysPidfdOpen)
	add(ret, 0, 0, allow)
	add(load, 0, 0, first)
	add(jump, 0, 0, 1)
	add(load, 0, 0, second)
	add(jumpIfEqual, 2, 0, uint32(pid))
	add(jumpIfEqual, 1, 0, uint32(tid))
	add(ret, 0, 0, allow)
	add(ret, 0, 0, refuse)
	return filter
}

// A program is struct sock_fprog.
type program struct {
	length uint16
	filter *byte
}

func programOf(filter []byte) program { return program{uint16(len(filter) / 8), &filter[0]} }

// listen makes the kernel send a notification before this thread and its children make certain
// calls. It sends the notification file to the parent, which answers.
func (w *restrictions) listen() error {
	filter := make([]byte, 8192)
	n, err := again(func() (int, error) { return syscall.Read(w.listener, filter) })
	if err != nil || n <= 0 {
		return syscall.EIO
	}
	program := programOf(filter[:n])
	fd, _, errno := syscall.RawSyscall(sysSeccomp(), 1 /* SECCOMP_SET_MODE_FILTER */, seccompNewListener, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	syscall.CloseOnExec(int(fd))
	defer func() { _ = syscall.Close(int(fd)) }()
	return syscall.Sendmsg(w.listener, []byte{0}, syscall.UnixRights(int(fd)), nil, 0)
}

const seccompNewListener = 8 // SECCOMP_FILTER_FLAG_NEW_LISTENER

// sysSeccomp is the number of seccomp(2) on architectures that have a sandbox.
func sysSeccomp() uintptr {
	if runtime.GOARCH == "amd64" {
		return 317
	}
	return 277
}

// closeAllOnExec makes the command inherit nothing but its streams.
func closeAllOnExec() error {
	const sysCloseRange, onExec = 436, 1 << 2 // of every architecture
	_, _, errno := syscall.RawSyscall(sysCloseRange, 3, 1<<32-1, onExec)
	if errno != syscall.ENOSYS && errno != syscall.EINVAL {
		return errorOf(errno)
	}
	files, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, file := range files {
		if fd, err := strconv.Atoi(file.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}
