package box

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

// The types of seccomp_unotify(2): struct seccomp_notif and struct seccomp_notif_resp.
type (
	notification struct {
		id     uint64
		pid    uint32 // of the thread
		flags  uint32
		number int32
		arch   uint32
		ip     uint64
		args   [6]uint64
	}
	response struct {
		id    uint64
		value int64
		errno int32 // negative
		flags uint32
	}
)

// A listener decides on certain system calls of one tree of processes, of which the kernel
// notifies it (seccomp_unotify(2)). It records the calls, and makes connections in place of the
// server.
type listener struct {
	trace     *Trace   // nil records nothing
	gate      *gate    // nil lets connect(2) continue
	noNetwork bool     // with a trace: sockets of the network are refused
	guardEnd  *os.File // the guard reads the filter here, and sends the file of the notifications
	ourEnd    *net.UnixConn
	done      sync.WaitGroup
}

// listen makes a listener if the server is traced, or its network is a list of hosts.
func (b *Sandbox) listen(s Server) error {
	l := &listener{trace: s.Trace, noNetwork: s.Network == sandbox.NoNetwork && !b.learns}
	if b.proxy != nil && !b.learns {
		l.gate = &gate{proxy: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), b.proxy.Port()), deny: b.deny, write: b.writable}
	}
	if l.trace == nil && (l.gate == nil || !sandbox.HasNotifications()) {
		return nil
	}
	if err := l.start(); err != nil {
		return err
	}
	b.listener = l
	return nil
}

// filter returns the filter that makes the kernel notify us.
func (l *listener) filter() ([]byte, error) {
	calls := []uintptr{unix.SYS_CONNECT}
	if l.trace != nil {
		for _, call := range tracedCalls {
			calls = append(calls, call.number)
		}
	}
	return sandbox.Asking(calls, l.noNetwork && l.trace != nil)
}

// start makes a listener wait for its guard. Its goroutine ends with the tree, or when ourEnd is
// closed before the tree has started.
func (l *listener) start() error {
	filter, err := l.filter()
	if err != nil {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	near := os.NewFile(uintptr(pair[0]), "listener")
	defer near.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		unix.Close(pair[1])
		return err
	}
	l.guardEnd, l.ourEnd = os.NewFile(uintptr(pair[1]), "listener"), conn.(*net.UnixConn)
	if _, err := l.ourEnd.Write(filter); err != nil {
		l.close()
		return err
	}
	l.done.Go(func() {
		if err := l.run(); err != nil && l.trace != nil {
			l.trace.fail(err)
		}
	})
	return nil
}

// close waits for the listener to end. The tree has ended, or has not started.
func (l *listener) close() {
	if l == nil {
		return
	}
	l.guardEnd.Close()
	l.ourEnd.Close()
	l.done.Wait()
}

// run answers the kernel until no process of the tree is left. Each call waits for its answer.
func (l *listener) run() error {
	fd, err := l.receive()
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "notifications") // non-blocking, or a thread would wait
	defer file.Close()
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		for {
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(ready, 0)
			switch {
			case errors.Is(err, unix.EINTR):
			case n == 0:
				return false
			case ready[0].Revents&unix.POLLIN == 0:
				return true
			default:
				l.answer(int(fd))
			}
		}
	})
}

// receive returns the file of the notifications.
func (l *listener) receive() (int, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := l.ourEnd.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return -1, fmt.Errorf("the start was not traced: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return -1, errors.New("this system cannot trace: seccomp(2) returned no notification file")
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return -1, err
	}
	if err := unix.SetNonblock(files[0], true); err != nil {
		return -1, errors.Join(err, unix.Close(files[0]))
	}
	return files[0], nil
}

// answer answers one call.
func (l *listener) answer(fd int) {
	var n notification
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return // it was killed
	}
	reply := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	switch {
	case n.number == unix.SYS_SOCKET:
		l.trace.Socket.Store(true)
		reply.flags, reply.errno = 0, -int32(unix.EACCES)
	case l.trace != nil:
		l.trace.call(&n)
	}
	if l.gate != nil && n.number == unix.SYS_CONNECT {
		reply.flags, reply.errno = 0, -int32(l.gate.connect(fd, &n))
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply)))
}
