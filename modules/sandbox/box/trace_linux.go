package box

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A tracedCall is a recorded system call, with the indices of its arguments; -1 is no argument.
type tracedCall struct {
	number    uintptr
	dir, path int
	flags     int // of open
	need      Need
	when      existence
}

// An existence says for which paths a call is recorded: for other paths the call fails anyway.
type existence int

const (
	always existence = iota
	ifThere
	ifNew
)

// tracedCalls are the recorded calls: those that all architectures have, and legacyCalls, which
// are older forms of them.
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

// flagsBehind is the index of an argument that points to the flags (struct open_how).
func flagsBehind(arg int) int { return -2 - arg }

// call records a call. The arguments may change before the kernel reads them: a trace is
// for explanations, not a limit.
func (t *Trace) call(n *notification) {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if t.unread(err) {
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

// file records a call about a path.
func (t *Trace) file(memory *os.File, n *notification, call tracedCall) {
	path := pathOf(memory, n, call)
	if path == "" {
		return
	}
	need, when := call.need, call.when
	switch flags := flagsOf(memory, n, call); {
	case flags&unix.O_PATH != 0:
		return // Landlock does not limit it
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

// pathOf returns the absolute path of a call, "" if it is unknown or the call is about an open
// file.
func pathOf(memory *os.File, n *notification, call tracedCall) string {
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

func flagsOf(memory *os.File, n *notification, call tracedCall) uint64 {
	switch {
	case call.flags >= 0:
		return n.args[call.flags]
	case call.flags < -1:
		return word(memory, n.args[-2-call.flags])
	}
	return 0
}

// connection records the address of connect(2).
func (t *Trace) connection(memory *os.File, n *notification) {
	raw := sockaddr(memory, n)
	if address := inet(raw); address.IsValid() {
		t.noteIn(&t.addresses, address.String())
	} else if real, err := filepath.EvalSymlinks(socketPath(raw)); err == nil {
		t.note(real, ToChange)
	}
}

// text reads a string of another process, "" if it cannot be read.
func text(memory *os.File, at uint64) string {
	buffer := make([]byte, unix.PathMax)
	page := uint64(os.Getpagesize())
	n, _ := memory.ReadAt(buffer[:min(page-at%page, unix.PathMax)], int64(at)) // the next page may be unmapped
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
