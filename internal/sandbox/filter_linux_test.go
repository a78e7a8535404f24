package sandbox

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A syscallFilter is a filter that runs here, not in the kernel.
type syscallFilter struct {
	t  *testing.T
	vm *bpf.VM
}

func newFilter(t *testing.T, text []byte, err error) syscallFilter {
	t.Helper()
	var raw []bpf.RawInstruction
	for i := range slices.Chunk(text, 8) {
		raw = append(raw, bpf.RawInstruction{Op: binary.NativeEndian.Uint16(i), Jt: i[2], Jf: i[3], K: binary.NativeEndian.Uint32(i[4:])})
	}
	program, ok := bpf.Disassemble(raw)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return syscallFilter{t, vm}
}

// verdict returns what happens to a call. Of the arguments, the low words are given.
func (f syscallFilter) verdict(arch, number uint32, args ...uint32) uint32 {
	f.t.Helper()
	data := make([]byte, 64) // struct seccomp_data, in the order of bytes of the machine that runs the filter
	binary.BigEndian.PutUint32(data, number)
	binary.BigEndian.PutUint32(data[4:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], arg)
	}
	n, err := f.vm.Run(data)
	if err != nil {
		f.t.Fatal(err)
	}
	return uint32(n)
}

const (
	ok       = uint32(unix.SECCOMP_RET_ALLOW)
	asked    = uint32(unix.SECCOMP_RET_USER_NOTIF)
	eperm    = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EPERM)
	enosys   = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.ENOSYS)
	eacces   = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EACCES)
	enotsupp = uint32(unix.SECCOMP_RET_ERRNO) | uint32(unix.EOPNOTSUPP)
)

// policies are all kinds of policies, with the version of Landlock beside which they are used.
func policies(t *testing.T, each func(p Policy, version int, f syscallFilter)) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, network := range []Network{AllNetwork, NoNetwork, OnlyByProxy} {
		for _, version := range []int{0, 1, withResolveUnix - 1, withResolveUnix} {
			for _, write := range [][]string{nil, {socket}} {
				for _, traced := range []bool{false, true} {
					p := Policy{Network: network, Write: write, traced: traced}
					text, err := filter(p, version)
					each(p, version, newFilter(t, text, err))
				}
			}
		}
	}
}

// Each call of each policy has the verdict of its list, by number, architecture and argument.
func TestFilter(t *testing.T) {
	arch := archOf[runtime.GOARCH]
	want := map[uint32]uint32{}
	for verdict, calls := range map[uint32][]uintptr{eperm: denied, enosys: absent, enotsupp: attributes} {
		for _, call := range calls {
			want[uint32(call)] = verdict
		}
	}
	judged := []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR}
	policies(t, func(p Policy, _ int, f syscallFilter) {
		for number := range uint32(600) {
			verdict, listed := want[number]
			if !listed {
				verdict = ok
			}
			if got := f.verdict(arch, number); got != verdict && !slices.Contains(judged, number) {
				t.Errorf("%+v: call %d: got %#x, want %#x", p, number, got, verdict)
			}
			if got := f.verdict(arch+1, number); got != enosys {
				t.Errorf("%+v: call %d of another architecture: got %#x", p, number, got)
			}
			if got := f.verdict(arch, x32Bit+number); got != enosys {
				t.Errorf("%+v: call %d of x32: got %#x", p, number, got)
			}
		}
		if got := f.verdict(arch, x32Bit-1); got != ok {
			t.Errorf("%+v: the call before those of x32: got %#x", p, got)
		}
		for _, c := range []struct {
			number uint32
			args   []uint32
			want   uint32
		}{
			{unix.SYS_PRLIMIT64, []uint32{0, unix.RLIMIT_NOFILE}, ok}, {unix.SYS_PRLIMIT64, []uint32{1, 0}, eperm},
			{unix.SYS_FCNTL, []uint32{3, unix.F_SETOWN, 7}, eperm}, {unix.SYS_FCNTL, []uint32{3, unix.F_SETOWN_EX, 7}, eperm},
			{unix.SYS_FCNTL, []uint32{unix.F_SETOWN, unix.F_GETFL}, ok}, {unix.SYS_FCNTL, []uint32{3, unix.F_GETOWN}, ok},
			{unix.SYS_IOCTL, []uint32{3, 0x8901}, eperm}, {unix.SYS_IOCTL, []uint32{3, 0x8902}, eperm}, {unix.SYS_IOCTL, []uint32{3, 0x8903}, ok},
			{unix.SYS_SENDTO, []uint32{3, 0, 0, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, eperm}, {unix.SYS_SENDTO, []uint32{3, 0, 0, unix.MSG_NOSIGNAL, 0, 16}, ok},
			{unix.SYS_SENDMSG, []uint32{3, 0, unix.MSG_FASTOPEN}, eperm}, {unix.SYS_SENDMSG, []uint32{3, 0, unix.MSG_NOSIGNAL}, ok},
			{unix.SYS_SENDMMSG, []uint32{3, 0, 1, unix.MSG_FASTOPEN}, eperm}, {unix.SYS_SENDMMSG, []uint32{3, 0, unix.MSG_FASTOPEN, 0}, ok},
			{unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, ok},
			{unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_SEQPACKET | unix.SOCK_NONBLOCK}, ok},
			{unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, eacces}, {unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_RAW}, eacces},
			{unix.SYS_SOCKETPAIR, []uint32{unix.AF_INET, unix.SOCK_STREAM}, eacces},
		} {
			if got := f.verdict(arch, c.number, c.args...); got != c.want {
				t.Errorf("%+v: call %d of %#x: got %#x, want %#x", p, c.number, c.args, got, c.want)
			}
		}
	})
}

// The sockets that each policy allows.
func TestFilteredSockets(t *testing.T) {
	arch := archOf[runtime.GOARCH]
	policies(t, func(p Policy, version int, f syscallFilter) {
		want := func(family, kind, protocol uint32) uint32 {
			stream := kind == unix.SOCK_STREAM
			switch family {
			case unix.AF_UNIX:
				switch {
				case version >= withResolveUnix: // Landlock decides
					return ok
				case p.Write == nil, p.Network == OnlyByProxy && !stream && kind != unix.SOCK_SEQPACKET:
					return eacces
				}
				return ok
			case unix.AF_INET, unix.AF_INET6:
				switch {
				case p.Network == AllNetwork, p.Network == NoNetwork && p.traced: // the listener refuses them
					return ok
				case p.Network == OnlyByProxy && stream && (protocol == 0 || protocol == unix.IPPROTO_TCP):
					return ok
				}
			case unix.AF_NETLINK:
				if p.Network != NoNetwork {
					return ok
				}
			}
			return eacces
		}
		for _, family := range []uint32{0, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG} {
			for _, kind := range []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
				for _, protocol := range []uint32{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP, unix.IPPROTO_MPTCP} {
					for _, flags := range []uint32{0, unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK} {
						if got, want := f.verdict(arch, unix.SYS_SOCKET, family, kind|flags, protocol), want(family, kind, protocol); got != want {
							t.Errorf("%+v beside Landlock %d: socket(%d, %#x, %d): got %#x, want %#x", p, version, family, kind|flags, protocol, got, want)
						}
					}
				}
			}
		}
	})
}

// The kernel asks about connections and, for a trace, about paths and refused sockets.
func TestFilterOfTheListener(t *testing.T) {
	arch := archOf[runtime.GOARCH]
	for _, l := range []*listener{{}, {noNetwork: true}, {trace: &Trace{}}, {trace: &Trace{}, noNetwork: true}} {
		text, err := l.filter()
		f := newFilter(t, text, err)
		for number := range uint32(600) {
			want := ok
			switch traced := slices.ContainsFunc(tracedCalls, func(c tracedCall) bool { return c.number == uintptr(number) }); {
			case slices.Contains(ring, uintptr(number)):
				want = enosys
			case number == unix.SYS_CONNECT, l.trace != nil && traced:
				want = asked
			}
			if got := f.verdict(arch, number, unix.AF_UNIX); got != want {
				t.Errorf("%+v: call %d: got %#x, want %#x", l, number, got, want)
			}
		}
		for family, network := range map[uint32]bool{unix.AF_UNIX: false, unix.AF_INET: true, unix.AF_INET6: true, unix.AF_NETLINK: false} {
			want := ok
			if network && l.trace != nil && l.noNetwork {
				want = asked
			}
			if got := f.verdict(arch, unix.SYS_SOCKET, family); got != want {
				t.Errorf("%+v: a socket of family %d: got %#x, want %#x", l, family, got, want)
			}
		}
	}
}

// What each version of Landlock is asked to forbid.
func TestHandledAccess(t *testing.T) {
	for version := range 12 {
		for _, network := range []Network{AllNetwork, NoNetwork, OnlyByProxy} {
			got := handledBy(Policy{Network: network}, version)
			for right, since := range map[uint64]int{
				unix.LANDLOCK_ACCESS_FS_READ_FILE: 0, unix.LANDLOCK_ACCESS_FS_WRITE_FILE: 0, unix.LANDLOCK_ACCESS_FS_REFER: 2,
				unix.LANDLOCK_ACCESS_FS_TRUNCATE: 3, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV: 5, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX: 9,
			} {
				if has := got.Handled_access_fs&right != 0; has != (version >= since) {
					t.Errorf("version %d handles the access %#x: %t", version, right, has)
				}
			}
			if has := got.Handled_access_net != 0; has != (version >= 4 && network != AllNetwork) {
				t.Errorf("version %d handles connections with network %d: %t", version, network, has)
			}
			if has := got.Scoped != 0; has != (version >= 6) {
				t.Errorf("version %d limits signals: %t", version, has)
			}
		}
	}
}

// What a system lacks for a policy is said.
func TestMissingParts(t *testing.T) {
	const files, cut, signals, calls, connections, around = "no Landlock", "cut short", "signals", "no seccomp", "connections (", "around its proxy"
	for _, c := range []struct {
		network                Network
		version                int
		filters, notifications bool
		want                   []string
	}{
		{AllNetwork, 9, true, true, nil}, {OnlyByProxy, 6, true, true, nil}, {NoNetwork, 6, true, false, nil},
		{AllNetwork, 5, true, true, []string{signals}}, {AllNetwork, 3, true, true, []string{signals}},
		{AllNetwork, 2, true, true, []string{cut, signals}}, {AllNetwork, 1, true, true, []string{cut, signals}},
		{AllNetwork, 0, true, true, []string{files, signals}},
		{AllNetwork, 9, false, false, []string{calls}},
		{NoNetwork, 6, false, false, []string{calls}}, {NoNetwork, 4, false, false, []string{signals, calls}},
		{NoNetwork, 3, false, false, []string{signals, calls, connections}}, {NoNetwork, 3, true, false, []string{signals}},
		{OnlyByProxy, 9, true, false, []string{around}}, {OnlyByProxy, 3, false, false, []string{signals, calls, around}},
	} {
		got := Policy{Network: c.network}.missing(c.version, c.filters, c.notifications)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%+v: got %q", c, got)
		}
	}
}

func TestNamedSockets(t *testing.T) {
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "file"), filepath.Join(dir, "socket")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, c := range []struct {
		paths []string
		want  bool
	}{{nil, false}, {[]string{dir, file, socket + "x"}, false}, {[]string{file, socket}, true}} {
		if got := namesSocket(c.paths); got != c.want {
			t.Errorf("%q: got %t", c.paths, got)
		}
	}
}

// A gate connects to the proxy and to named sockets, to nothing else.
func TestGateConnects(t *testing.T) {
	dir := t.TempDir()
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	proxy := listen("tcp4", "127.0.0.1:0").Addr().(*net.TCPAddr).AddrPort()
	other := listen("tcp4", "127.0.0.1:0").Addr().(*net.TCPAddr).AddrPort()
	named, secret := filepath.Join(dir, "named"), filepath.Join(dir, "secret")
	listen("unix", named)
	listen("unix", secret)
	t.Chdir(dir)
	if err := os.Symlink(secret, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	four := func(a netip.AddrPort) []byte {
		raw := binary.BigEndian.AppendUint16(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), a.Port())
		ip := a.Addr().As4()
		return append(append(raw, ip[:]...), make([]byte, 8)...)
	}
	file := func(path string) []byte {
		return append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), path...), 0)
	}
	var refused []string
	g := &gate{proxy: proxy, write: func() []string { return []string{named} }, deny: func(why string) { refused = append(refused, why) }}
	n := &notification{pid: uint32(os.Getpid())}
	for _, c := range []struct {
		name   string
		family int
		raw    []byte
		want   unix.Errno
		said   bool
	}{
		{"the proxy", unix.AF_INET, four(proxy), 0, false},
		{"another port", unix.AF_INET, four(other), unix.EACCES, true},
		{"another address", unix.AF_INET, four(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), proxy.Port())), unix.EACCES, true},
		{"a short address", unix.AF_INET, four(proxy)[:7], unix.EACCES, true},
		{"a named socket", unix.AF_UNIX, file(named), 0, false},
		{"a named socket by a relative path", unix.AF_UNIX, file("named"), 0, false},
		{"another socket", unix.AF_UNIX, file(secret), unix.EACCES, false},
		{"a link to another socket", unix.AF_UNIX, file("link"), unix.EACCES, false},
		{"a socket that is not there", unix.AF_UNIX, file(secret + "x"), unix.ENOENT, false},
		{"an abstract socket", unix.AF_UNIX, file("\x00abstract"), unix.EACCES, false},
		{"no name", unix.AF_UNIX, file("")[:2], unix.EACCES, false},
		{"an unknown family", unix.AF_UNIX, binary.NativeEndian.AppendUint16(nil, unix.AF_VSOCK), unix.EACCES, false},
		{"nothing", unix.AF_INET, make([]byte, 16), 0, false},
	} {
		fd, err := unix.Socket(c.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		refused = nil
		if got := g.connectTo(fd, n, c.raw); got != c.want || len(refused) > 0 != c.said {
			t.Errorf("%s: got %v, want %v; said: %q", c.name, got, c.want, refused)
		}
		if c.name == "the proxy" {
			if got := g.connectTo(fd, n, c.raw); got != 0 {
				t.Errorf("%s, by a call that is repeated: %v", c.name, got)
			}
		}
		unix.Close(fd)
	}
}

// An address is copied from the memory of the caller: no more than it says, and no more than there are.
func TestAddressesOfCalls(t *testing.T) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	raw := binary.NativeEndian.AppendUint16(make([]byte, 0, 256), unix.AF_INET6)
	raw = binary.BigEndian.AppendUint16(raw, 443)
	raw = append(raw, 0, 0, 0, 0)
	ip := netip.MustParseAddr("2001:db8::1").As16()
	raw = append(raw, ip[:]...)[:256]
	at := func(size uint64) *notification {
		return &notification{args: [6]uint64{3, uint64(uintptr(unsafe.Pointer(&raw[0]))), size}}
	}
	for size, want := range map[uint64]int{0: 0, 1: 0, 2: 2, 28: 28, unix.SizeofSockaddrAny: unix.SizeofSockaddrAny, 1 << 40: unix.SizeofSockaddrAny} {
		if got := sockaddr(memory, at(size)); len(got) != want {
			t.Errorf("of %d bytes %d are copied, want %d", size, len(got), want)
		}
	}
	if got := sockaddr(memory, &notification{args: [6]uint64{3, 8, 16}}); got != nil {
		t.Errorf("of no memory: %v", got)
	}
	for size, want := range map[uint64]string{28: "[2001:db8::1]:443", 24: "[2001:db8::1]:443", 23: "invalid AddrPort", 2: "invalid AddrPort", 0: "invalid AddrPort"} {
		if got := inet(sockaddr(memory, at(size))).String(); got != want {
			t.Errorf("of %d bytes: got %s, want %s", size, got, want)
		}
	}
	four := append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), 1, 187, 192, 0, 2, 1)
	mapped := netip.MustParseAddr("::ffff:192.0.2.1").As16()
	six := append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), 1, 187, 0, 0, 0, 0), mapped[:]...)
	for want, raw := range map[string][]byte{"192.0.2.1:443": four, "invalid AddrPort": four[:7]} {
		if got := inet(raw).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := inet(six).String(); got != "192.0.2.1:443" {
		t.Errorf("a mapped address: got %s", got)
	}
	unixFamily := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	for _, c := range []struct {
		raw  []byte
		want string
	}{{append(slices.Clone(unixFamily), "/run/s\x00rest"...), "/run/s"}, {append(slices.Clone(unixFamily), "s"...), "s"}, {unixFamily, ""}, {nil, ""}, {append(slices.Clone(unixFamily), "\x00abstract"...), ""}, {four, ""}} {
		if got := socketPath(c.raw); got != c.want {
			t.Errorf("%q: got %q", c.raw, got)
		}
	}
}
