package box

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A gate connects the sockets of a server to its proxy, and to Unix sockets that it may change.
// Landlock limits the port but not the address, and another machine may use the proxy's port.
// The gate checks a copy of the address, which the server can no longer change, and connects
// with that copy: the server's own call is not executed.
type gate struct {
	proxy netip.AddrPort
	write func() []string // without symbolic links
	deny  func(why string)
}

// connect performs a call of connect(2), or refuses it.
func (g *gate) connect(notifications int, n *notification) unix.Errno {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.pid))
	if err != nil {
		return unix.EACCES
	}
	defer memory.Close()
	raw := sockaddr(memory, n)
	if len(raw) < 2 {
		return unix.EINVAL
	}
	socket, err := duplicateSocket(n)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(socket)
	// The thread may have been killed, and its number reused.
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(notifications), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&n.id))); errno != 0 {
		return errno
	}
	return g.connectTo(socket, n, raw)
}

// connectTo connects a socket to an address, if that is allowed.
func (g *gate) connectTo(socket int, n *notification, raw []byte) unix.Errno {
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_UNSPEC: // dissolves a connection
		return connect(socket, raw)
	case unix.AF_UNIX:
		return g.connectFile(socket, n, socketPath(raw))
	case unix.AF_INET, unix.AF_INET6:
		address := inet(raw)
		if address != g.proxy {
			g.deny(fmt.Sprintf("the sandbox does not allow a connection to %s around the proxy that HTTPS_PROXY names", address))
			return unix.EACCES
		}
		errno := connect(socket, raw)
		if errno == unix.EISCONN { // a call that a signal interrupted is repeated
			errno = 0
		}
		return errno
	}
	return unix.EACCES
}

// connectFile connects a socket to a Unix socket that is a file.
func (g *gate) connectFile(socket int, n *notification, path string) unix.Errno {
	if path == "" {
		return unix.EACCES
	}
	if !filepath.IsAbs(path) {
		path = fmt.Sprintf("/proc/%d/cwd/%s", n.pid, path)
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return unix.ENOENT
	}
	defer unix.Close(fd)
	opened := "/proc/self/fd/" + strconv.Itoa(fd)
	if real, err := os.Readlink(opened); err != nil || !below(g.write(), real) {
		return unix.EACCES
	}
	raw := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), opened...)
	return connect(socket, append(raw, 0))
}

func connect(socket int, raw []byte) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	return errno
}

// duplicateSocket duplicates the descriptor that is the first argument of a call.
func duplicateSocket(n *notification) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.pid))
	if err != nil {
		return -1, err
	}
	_, after, _ := bytes.Cut(status, []byte("\nTgid:\t"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	process, err := strconv.Atoi(string(line))
	if err != nil {
		return -1, err
	}
	pidfd, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, int(int32(n.args[0])), 0)
}

// sockaddr returns a copy of the address in a call of connect(2).
func sockaddr(memory *os.File, n *notification) []byte {
	raw := make([]byte, min(n.args[2], unix.SizeofSockaddrAny))
	if _, err := memory.ReadAt(raw, int64(n.args[1])); err != nil || len(raw) < 2 {
		return nil
	}
	return raw
}

// inet returns an internet address, the zero value for others.
func inet(raw []byte) netip.AddrPort {
	if len(raw) < 2 {
		return netip.AddrPort{}
	}
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_INET && len(raw) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:]))
	case family == unix.AF_INET6 && len(raw) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:]))
	}
	return netip.AddrPort{}
}

// socketPath returns the path of a socket that is a file, "" for others.
func socketPath(raw []byte) string {
	if len(raw) < 3 || binary.NativeEndian.Uint16(raw) != unix.AF_UNIX {
		return ""
	}
	return unix.ByteSliceToString(raw[2:]) // an abstract socket begins with a zero byte
}
