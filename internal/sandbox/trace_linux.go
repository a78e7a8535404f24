package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A tracedCall is a system call that is noted, by the places of its arguments: none is -1.
type tracedCall struct {
	number    uintptr
	dir, path int
	flags     int // of open
	need      Need
	when      existence
}

// An existence says for which paths a call is noted: for others it fails without a limit.
type existence int

const (
	always existence = iota
	ifThere
	ifNew
)

// tracedCalls are those of every architecture; legacyCalls are older forms of them.
var tracedCalls = append([]tracedCall{
	{unix.SYS_OPENAT, 0, 1, 2, ToRead, ifThere},
	{unix.SYS_OPENAT2, 0, 1, flagsBehind(2), ToRead, ifThere},
	{unix.SYS_EXECVE, -1, 0, -1, ToRead, ifThere},
	{unix.SYS_EXECVEAT, 0, 1, -1, ToRead, ifThere},
	{unix.SYS_TRUNCATE, -1, 0, -1, ToChange, ifThere},
	{unix.SYS_MKDIRAT, 0, 1, -1, ToMake, ifNew},
	{unix.SYS_MKNODAT, 0, 1, -1, ToMake, ifNew},
	{unix.SYS_UNLINKAT, 0, 1, -1, ToMake, ifThere},
	{unix.SYS_SYMLINKAT, 1, 2, -1, ToMake, ifNew},
	{unix.SYS_LINKAT, 2, 3, -1, ToMake, ifNew},
	{unix.SYS_RENAMEAT2, 0, 1, -1, ToMake, ifThere},
	{unix.SYS_RENAMEAT2, 2, 3, -1, ToMake, always},
}, legacyCalls...)

// flagsBehind is an argument that points to the flags (struct open_how).
func flagsBehind(arg int) int { return -2 - arg }

// A notice is struct seccomp_notif, an answer struct seccomp_notif_resp (linux/seccomp.h).
type (
	notice struct {
		id     uint64
		pid    uint32
		flags  uint32
		number int32
		arch   uint32
		ip     uint64
		args   [6]uint64
	}
	answerToNotice struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// tracer returns a filter that has the kernel ask before a traced call goes on. Work that is
// handed to io_uring would pass unseen: there is none.
func tracer() ([]byte, error) {
	program, err := prologue()
	if err != nil {
		return nil, err
	}
	program = on(program, absent, errno(unix.ENOSYS))
	traced := []uintptr{unix.SYS_CONNECT}
	for _, call := range tracedCalls {
		traced = append(traced, call.number)
	}
	program = on(program, traced, bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF})
	return assemble(append(program, allowed))
}

// A tracing notes the calls of one tree of processes.
type tracing struct {
	trace  *Trace
	theirs *os.File // takes the filter and gives back the file that the kernel asks on
	ours   *net.UnixConn
	done   sync.WaitGroup
}

// start makes a tracing. Its goroutine ends with the tree, or when ours is closed before that
// has started.
func (t *Trace) start() (*tracing, error) {
	filter, err := tracer()
	if err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	near := os.NewFile(uintptr(pair[0]), "trace")
	defer near.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		unix.Close(pair[1])
		return nil, err
	}
	r := &tracing{trace: t, theirs: os.NewFile(uintptr(pair[1]), "trace"), ours: conn.(*net.UnixConn)}
	if _, err := r.ours.Write(filter); err != nil {
		r.close()
		return nil, err
	}
	r.done.Go(func() {
		if err := r.run(); err != nil {
			t.fail(err)
		}
	})
	return r, nil
}

// close waits for the end of the tracing. The tree has ended, or has not started.
func (r *tracing) close() {
	if r == nil {
		return
	}
	r.theirs.Close()
	r.ours.Close()
	r.done.Wait()
}

// run answers the kernel until no process of the tree is left.
func (r *tracing) run() error {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := r.ours.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return fmt.Errorf("the start was not traced: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return errors.New("this system does not trace: seccomp(2) gave no file to listen on")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	defer unix.Close(files[0])
	for {
		ready := []unix.PollFd{{Fd: int32(files[0]), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready[0].Revents&unix.POLLIN != 0 {
			r.answer(files[0])
		} else if ready[0].Revents != 0 {
			return nil
		}
	}
}

// answer notes one call and lets it go on.
func (r *tracing) answer(fd int) {
	var n notice
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return // it was killed
	}
	r.trace.call(&n)
	reply := answerToNotice{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply)))
}

// call notes a call. The arguments may change before the kernel reads them: a trace is for
// explanations, not a limit.
func (t *Trace) call(n *notice) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		t.fail(err)
		return
	}
	defer memory.Close()
	if n.number == unix.SYS_CONNECT {
		t.connection(memory, n)
		return
	}
	for _, call := range tracedCalls {
		if call.number == uintptr(n.number) {
			t.file(memory, n, call)
		}
	}
}

// file notes a call about a path.
func (t *Trace) file(memory *os.File, n *notice, call tracedCall) {
	path := pathOf(memory, n, call)
	if path == "" {
		return
	}
	need, when := call.need, call.when
	switch flags := flagsOf(memory, n, call); {
	case flags&unix.O_PATH != 0:
		return // is not limited
	case flags&unix.O_CREAT != 0:
		need, when = ToChange, always
	case flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_TRUNC) != 0:
		need = ToChange
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case err == nil && when != ifNew:
		t.note(real, need)
	case err != nil && when != ifThere:
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			t.note(filepath.Join(dir, filepath.Base(path)), ToMake)
		}
	}
}

// pathOf returns the path that a call is about, absolute; "" if it cannot be told, or is that
// of an open file.
func pathOf(memory *os.File, n *notice, call tracedCall) string {
	path := text(memory, n.args[call.path])
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	at := "cwd"
	if call.dir >= 0 && int32(n.args[call.dir]) != unix.AT_FDCWD {
		at = "fd/" + strconv.Itoa(int(int32(n.args[call.dir])))
	}
	dir, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", n.pid, at))
	if err != nil {
		return ""
	}
	return filepath.Join(dir, path)
}

func flagsOf(memory *os.File, n *notice, call tracedCall) uint64 {
	switch {
	case call.flags >= 0:
		return n.args[call.flags]
	case call.flags < -1:
		return word(memory, n.args[-2-call.flags])
	}
	return 0
}

// connection notes where connect(2) leads.
func (t *Trace) connection(memory *os.File, n *notice) {
	raw := make([]byte, min(n.args[2], unix.SizeofSockaddrAny))
	if _, err := memory.ReadAt(raw, int64(n.args[1])); err != nil || len(raw) < 2 {
		return
	}
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_INET && len(raw) >= 8:
		t.noteAddress(netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])).String())
	case family == unix.AF_INET6 && len(raw) >= 24:
		t.noteAddress(netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:])).String())
	case family == unix.AF_UNIX && len(raw) > 3 && raw[2] != 0: // zero is an abstract one
		path := unix.ByteSliceToString(raw[2:])
		if real, err := filepath.EvalSymlinks(path); err == nil {
			t.note(real, ToChange)
		}
	}
}

// text reads a string of another process, "" if it cannot be read.
func text(memory *os.File, at uint64) string {
	buffer := make([]byte, unix.PathMax)
	page := uint64(os.Getpagesize())
	n, _ := memory.ReadAt(buffer[:min(page-at%page, unix.PathMax)], int64(at)) // the next page may not be there
	if s := unix.ByteSliceToString(buffer[:n]); len(s) < n {
		return s
	}
	n, _ = memory.ReadAt(buffer, int64(at))
	if s := unix.ByteSliceToString(buffer[:n]); len(s) < n {
		return s
	}
	return ""
}

func word(memory *os.File, at uint64) uint64 {
	raw := make([]byte, 8)
	if _, err := memory.ReadAt(raw, int64(at)); err != nil {
		return 0
	}
	return binary.NativeEndian.Uint64(raw)
}
