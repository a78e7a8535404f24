package box_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

var networkAttempts = []attempt{
	{name: "TCP without a network", try: dial("tcp"), args: portOf, network: sandbox.NoNetwork},
	{name: "UDP without a network", try: socket(unix.AF_INET, unix.SOCK_DGRAM, 0), args: nothing, network: sandbox.NoNetwork},
	{name: "IPv6 without a network", try: socket(unix.AF_INET6, unix.SOCK_STREAM, 0), args: nothing, network: sandbox.NoNetwork},
	{name: "listen without a network", try: func([]string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err == nil {
			l.Close()
		}
		return err
	}, args: nothing, network: sandbox.NoNetwork},
	{name: "interfaces without a network", try: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), args: nothing, network: sandbox.NoNetwork},

	{name: "another port than the proxy's", try: dial("tcp"), args: portOf, network: sandbox.OnlyByProxy},
	{name: "another port from a child", try: shell, args: func(w *world) []string {
		return []string{"exec bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + strconv.Itoa(w.port) + "'"}
	}, network: sandbox.OnlyByProxy},
	{name: "IPv6 around the proxy", try: dial("tcp"), args: func(w *world) []string { return []string{"[::1]:" + strconv.Itoa(w.six)} }, network: sandbox.OnlyByProxy},
	{name: "UDP around the proxy", try: dial("udp"), args: func(w *world) []string { return []string{"127.0.0.1:" + strconv.Itoa(w.udp)} }, network: sandbox.OnlyByProxy},
	{name: "DNS around the proxy", try: socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP), args: nothing, network: sandbox.OnlyByProxy},
	{name: "a raw socket around the proxy", try: socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP), args: nothing, network: sandbox.OnlyByProxy},
	{name: "MPTCP around the proxy", try: socket(unix.AF_INET, unix.SOCK_STREAM, 262), args: nothing, network: sandbox.OnlyByProxy},
	{name: "SCTP or UDP-Lite around the proxy", try: socket(unix.AF_INET, unix.SOCK_DGRAM, 136), args: nothing, network: sandbox.OnlyByProxy},
	{name: "work handed to the kernel around the filter", try: func([]string) error {
		var params [128]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	}, args: nothing, network: sandbox.OnlyByProxy},
	{name: "the proxy's port at another address", try: dial("tcp"), args: func(w *world) []string {
		return []string{w.listen("tcp", "127.0.0.2:"+strconv.Itoa(w.proxy)).String()}
	}, network: sandbox.OnlyByProxy},
	{name: "the proxy's port at another address, by IPv6", try: dial("tcp6"), args: func(w *world) []string {
		return []string{w.listen("tcp", "[::1]:"+strconv.Itoa(w.proxy)).String()}
	}, network: sandbox.OnlyByProxy},
	{name: "the proxy's port at another address, with words", try: firstWords(unix.SYS_SENDTO), args: func(w *world) []string {
		return []string{w.listen("tcp", "127.0.0.2:"+strconv.Itoa(w.proxy)).String()}
	}, network: sandbox.OnlyByProxy},
	{name: "a connection with its first words", try: firstWords(unix.SYS_SENDTO), args: portOf, network: sandbox.OnlyByProxy},
	{name: "a connection with a message", try: firstWords(unix.SYS_SENDMSG), args: portOf, network: sandbox.OnlyByProxy},
	{name: "a connection with messages", try: firstWords(unix.SYS_SENDMMSG), args: portOf, network: sandbox.OnlyByProxy},
	{name: "the metadata of a cloud", try: unlessRefused, args: func(*world) []string { return []string{"169.254.169.254:80"} }, network: sandbox.OnlyByProxy},
	{name: "a host of the internet", try: unlessRefused, args: func(*world) []string { return []string{"192.0.2.1:443"} }, network: sandbox.OnlyByProxy},
	{name: "another thread that changes the address", try: changing, args: func(w *world) []string {
		return []string{strconv.Itoa(w.proxy), w.listen("tcp", "127.0.0.2:"+strconv.Itoa(w.proxy)).String()}
	}, network: sandbox.OnlyByProxy},
}

// datagramAttempts send a datagram to a socket that is a file: with each network, from each socket
// that could send it, by each call.
func datagramAttempts() (all []attempt) {
	for network, of := range []string{"all of the network", "no network", "a list of hosts"} {
		for call, number := range map[string]uintptr{"sendto": unix.SYS_SENDTO, "sendmsg": unix.SYS_SENDMSG, "sendmmsg": unix.SYS_SENDMMSG} {
			name := "a datagram with " + of + " by " + call
			all = append(all, attempt{name: name + " of a pair", try: datagram(unix.SYS_SOCKETPAIR, number), args: datagramOf, network: sandbox.Network(network)})
			if sandbox.Network(network) == sandbox.OnlyByProxy {
				all = append(all, attempt{name: name + " beside a named socket", try: datagram(unix.SYS_SOCKET, number), args: datagramOf, network: sandbox.OnlyByProxy, names: true})
			}
		}
		all = append(all, attempt{name: "a datagram with " + of + " by connect of a pair", try: datagram(unix.SYS_SOCKETPAIR, unix.SYS_CONNECT), args: datagramOf, network: sandbox.Network(network)})
	}
	return all
}

func datagramOf(w *world) []string { return []string{w.datagram} }

// datagram sends a datagram to a socket file from a socket that one call makes, by another.
func datagram(from, by uintptr) func([]string) error {
	return func(args []string) error {
		fds, err := [2]int{}, error(nil)
		if from == unix.SYS_SOCKET {
			fds[0], err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		} else {
			fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		}
		if err != nil {
			return err
		}
		if by == unix.SYS_CONNECT {
			return unix.Connect(fds[0], &unix.SockaddrUnix{Name: args[0]})
		}
		address := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
		for i, c := range []byte(args[0]) {
			address.Path[i] = int8(c)
		}
		return sendFirst(fds[0], by, 0, unsafe.Pointer(&address), unix.SizeofSockaddrUnix)
	}
}

// unlessRefused fails only if the kernel refuses a connection: none may be made here.
func unlessRefused(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], time.Second)
	if err == nil {
		conn.Close()
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// firstWords connects with its first data (TCP Fast Open), by a call that is not connect(2).
func firstWords(number uintptr) func([]string) error {
	return func(args []string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		at := netip.MustParseAddrPort(args[0])
		address := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: at.Port()<<8 | at.Port()>>8, Addr: at.Addr().As4()}
		return sendFirst(fd, number, unix.MSG_FASTOPEN, unsafe.Pointer(&address), unix.SizeofSockaddrInet4)
	}
}

// sendFirst sends a byte to an address.
func sendFirst(fd int, number, flags uintptr, address unsafe.Pointer, size uint32) error {
	words := []byte("x")
	var message struct {
		header unix.Msghdr
		sent   uint32
	}
	message.header = unix.Msghdr{Name: (*byte)(address), Namelen: size, Iov: &unix.Iovec{Base: &words[0], Len: 1}, Iovlen: 1}
	a := [4]uintptr{uintptr(unsafe.Pointer(&message)), flags}
	switch number {
	case unix.SYS_SENDTO:
		a = [4]uintptr{uintptr(unsafe.Pointer(&words[0])), 1, flags, uintptr(address)}
	case unix.SYS_SENDMMSG:
		a = [4]uintptr{uintptr(unsafe.Pointer(&message)), 1, flags}
	}
	n, _, errno := unix.Syscall6(number, uintptr(fd), a[0], a[1], a[2], a[3], uintptr(size))
	if errno != 0 {
		return errno
	}
	if n != 1 {
		return fmt.Errorf("%d were sent", n)
	}
	return nil
}

// changing connects to the proxy while another thread changes the address, until a connection
// reaches the other address.
func changing(args []string) error {
	port, _ := strconv.ParseUint(args[0], 10, 16)
	other := netip.MustParseAddrPort(args[1])
	address := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port)<<8 | uint16(port)>>8, Addr: [4]byte{127, 0, 0, 1}}
	last := (*atomic.Uint32)(unsafe.Pointer(&address.Addr))
	loopback, elsewhere := binary.NativeEndian.Uint32([]byte{127, 0, 0, 1}), binary.NativeEndian.Uint32(other.Addr().AsSlice())
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			default:
				last.Store(elsewhere)
				last.Store(loopback)
			}
		}
	}()
	// Only tries during which the address changed count: the other thread may not be running.
	for raced, began := 0, time.Now(); raced < 500 && time.Since(began) < 20*time.Second; {
		before := last.Load()
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&address)), unix.SizeofSockaddrInet4)
		peer, err := unix.Getpeername(fd)
		unix.Close(fd)
		if four, ok := peer.(*unix.SockaddrInet4); ok && errno == 0 && err == nil && four.Addr == other.Addr().As4() {
			return nil
		}
		if last.Load() != before {
			raced++
		}
	}
	return unix.EACCES
}
