package box_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

var processAttempts = []attempt{
	{name: "read the environment of a process", try: func(a []string) error { return read([]string{"/proc/" + a[0] + "/environ"}) }, args: pidOf},
	{name: "read the memory of a process", try: func(a []string) error { return open("/proc/"+a[0]+"/mem", unix.O_RDONLY) }, args: pidOf},
	{name: "follow the files of a process", try: func(a []string) error { _, err := os.Readlink("/proc/" + a[0] + "/fd/0"); return err }, args: pidOf},
	{name: "trace a process", try: func(a []string) error {
		if err := unix.PtraceAttach(ofPid(a)); err != nil {
			return err
		}
		var status unix.WaitStatus
		_, _ = unix.Wait4(ofPid(a), &status, unix.WALL, nil)
		return unix.PtraceDetach(ofPid(a))
	}, args: pidOf},
	{name: "read the memory of a process by a call", try: func(a []string) error { // dynmcp's: it is the same program, at the same addresses
		mine := make([]byte, 1)
		local := []unix.Iovec{{Base: &mine[0], Len: 1}}
		_, err := unix.ProcessVMReadv(ofPid(a), local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&ours)), Len: 1}}, 0)
		return err
	}, args: dynmcp},
	{name: "stop a process", try: func(a []string) error { return unix.Kill(ofPid(a), unix.SIGCONT) }, args: pidOf},
	{name: "stop our parent", try: func([]string) error { return unix.Kill(os.Getppid(), unix.SIGCONT) }, args: nothing},
	{name: "stop our parent by one of its threads", try: func([]string) error { // one of them started us, and is under the restrictions
		self, parent := os.Getpid(), os.Getppid()
		for id := parent; id < parent+200; id++ {
			if unix.Tgkill(self, id, 0) == nil {
				continue // one of ours
			}
			fd, _, errno := unix.Syscall(unix.SYS_PIDFD_OPEN, uintptr(id), unix.O_EXCL /* PIDFD_THREAD */, 0)
			if errno == 0 {
				err := unix.PidfdSendSignal(int(fd), 0, nil, 0)
				unix.Close(int(fd))
				if err == nil {
					return nil
				}
			}
			if unix.Tgkill(parent, id, 0) == nil || unix.Kill(id, 0) == nil {
				return nil
			}
		}
		return unix.EPERM
	}, args: nothing},
	{name: "mount", try: func(a []string) error {
		err := unix.Mount("none", a[0], "tmpfs", 0, "")
		if err == nil {
			_ = unix.Unmount(a[0], unix.MNT_DETACH)
		}
		return err
	}, args: func(w *world) []string { return []string{w.temp} }},
	{name: "leave for another namespace", try: func(a []string) error {
		f, err := os.Open("/proc/self/ns/ipc")
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Setns(int(f.Fd()), unix.CLONE_NEWIPC)
	}, args: nothing},
	{name: "ask the kernel for a key", try: func([]string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true)
		return err
	}, args: nothing},
	{name: "connect to a socket that is a file", try: dial("unix"), args: func(w *world) []string { return []string{w.socket} }},
	{name: "connect to an abstract socket", try: dial("unix"), args: func(w *world) []string { return []string{w.abstract} }},
	{name: "send packets of its own making", try: socket(unix.AF_PACKET, unix.SOCK_RAW, 0), args: nothing},
	{name: "read the environment of dynmcp", try: func(a []string) error { return read([]string{"/proc/" + a[0] + "/environ"}) }, args: dynmcp},
	{name: "read the memory of dynmcp", try: func(a []string) error { return open("/proc/"+a[0]+"/mem", unix.O_RDONLY) }, args: dynmcp},
	{name: "trace dynmcp", try: func(a []string) error { return unix.PtraceSeize(ofPid(a)) }, args: dynmcp},
	{name: "stop dynmcp", try: func(a []string) error { return unix.Kill(ofPid(a), unix.SIGCONT) }, args: dynmcp},
	{name: "take a file of dynmcp", try: func(a []string) error {
		process, err := unix.PidfdOpen(ofPid(a), 0)
		if err != nil {
			return err
		}
		defer unix.Close(process)
		fd, err := unix.PidfdGetfd(process, 0, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: dynmcp},
	{name: "limit dynmcp", try: func(a []string) error {
		var limit unix.Rlimit
		return unix.Prlimit(ofPid(a), unix.RLIMIT_CORE, nil, &limit)
	}, args: dynmcp},
	{name: "trace our guard", try: func([]string) error { return eachThread(unix.PtraceSeize) }, args: nothing},
	{name: "read the memory of our guard", try: func([]string) error {
		return eachThread(func(id int) error { return open(fmt.Sprintf("/proc/%d/mem", id), unix.O_RDONLY) })
	}, args: nothing},
	{name: "hold the orders of our guard", try: func([]string) error { // it would not see the end of dynmcp
		return eachThread(func(id int) error { return open(fmt.Sprintf("/proc/%d/fd/3", id), unix.O_WRONLY|unix.O_NONBLOCK) })
	}, args: nothing},
	{name: "have the kernel signal our guard", try: owned(func(fd, id int) error {
		owner := struct{ kind, id int32 }{0, int32(id)} // F_OWNER_TID
		return call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	}), args: nothing},
	{name: "have the kernel signal our guard by F_SETOWN", try: owned(func(fd, id int) error {
		return call(unix.SYS_FCNTL, uintptr(fd), unix.F_SETOWN, uintptr(id))
	}), args: nothing},
	{name: "have the kernel signal our guard by FIOSETOWN", try: owned(func(fd, id int) error {
		owner := int32(id)
		return call(unix.SYS_IOCTL, uintptr(fd), 0x8901, uintptr(unsafe.Pointer(&owner)))
	}), args: nothing},
	{name: "have the kernel signal our guard by SIOCSPGRP", try: owned(func(fd, id int) error {
		owner := int32(id)
		return call(unix.SYS_IOCTL, uintptr(fd), 0x8902, uintptr(unsafe.Pointer(&owner)))
	}), args: nothing},
	{name: "stop the group of our guard", try: func([]string) error { return unix.Kill(-os.Getppid(), unix.SIGCONT) }, args: nothing},
	{name: "mount in a namespace of its own", try: shell, args: func(w *world) []string {
		return []string{"unshare -Urm mount -t tmpfs none " + w.temp}
	}},
	{name: "become another user by a program", try: func(a []string) error { // as sudo does
		out, err := exec.Command(a[0], "-u").CombinedOutput()
		if text := strings.TrimSpace(string(out)); err == nil && text != strconv.Itoa(nobody) {
			return fmt.Errorf("it is user %s", text)
		}
		return err
	}, args: func(w *world) []string { return []string{filepath.Join(w.work, "id")} }},
	{name: "keep a key in the kernel", try: func([]string) error {
		_, err := unix.AddKey("user", "dynmcp-sandbox", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	}, args: nothing},
	{name: "load a program into the kernel", try: func([]string) error {
		attr := [16]uint32{2, 4, 4, 1} // BPF_MAP_TYPE_ARRAY of one
		return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}, args: nothing},
	{name: "watch the events of the machine", try: func([]string) error {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_TASK_CLOCK, Bits: unix.PerfBitExcludeKernel}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}, args: nothing},
	{name: "handle page faults", try: func([]string) error { return call(unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */, 0, 0) }, args: nothing},
	{name: "attach the shared memory of a process", try: func(a []string) error {
		memory, err := unix.SysvShmAttach(ofPid(a), 0, unix.SHM_RDONLY)
		if err == nil {
			_ = unix.SysvShmDetach(memory)
		}
		return err
	}, args: func(w *world) []string {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
		if err != nil {
			w.t.Skipf("there is no shared memory: %v", err)
		}
		w.t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		return []string{strconv.Itoa(id)}
	}},
	{name: "read the message queue of a process", try: func(a []string) error { return openQueue(a[0], unix.O_RDONLY) }, args: func(w *world) []string {
		name := "dynmcp-sandbox-" + strconv.Itoa(os.Getpid())
		if err := openQueue(name, unix.O_RDWR|unix.O_CREAT); err != nil {
			w.t.Skipf("there are no message queues: %v", err)
		}
		w.t.Cleanup(func() {
			text, _ := unix.BytePtrFromString(name)
			_ = call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(text)), 0, 0)
		})
		return []string{name}
	}},
}

// ours is read from the memory of dynmcp.
var ours byte = 1

// nobody owns the setuid program of the world.
const nobody = 65534

func dynmcp(*world) []string { return []string{strconv.Itoa(os.Getpid())} }

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func openQueue(name string, flags uintptr) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(text)), flags, 0o600, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return unix.Close(int(fd))
}

func call(number, first, second, third uintptr) error {
	if _, _, errno := unix.Syscall(number, first, second, third); errno != 0 {
		return errno
	}
	return nil
}

// owned makes the threads of our guard the owners of a socket, whom the kernel signals.
func owned(by func(fd, id int) error) func([]string) error {
	return func([]string) error {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return eachThread(func(id int) error { return by(pair[0], id) })
	}
}

// eachThread tries the threads of our guard until one succeeds. The thread that started us is
// under the restrictions itself.
func eachThread(try func(id int) error) (err error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", os.Getppid()))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		if err = try(id); err == nil {
			return nil
		}
	}
	return err
}
