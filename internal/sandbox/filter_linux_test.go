package sandbox

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

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
					p := Policy{Network: network, Write: write, Traced: traced}
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
				case p.Network == AllNetwork, p.Network == NoNetwork && p.Traced: // the listener refuses them
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

// The kernel asks about the calls that are named and, if it shall, about sockets of the network.
func TestAsking(t *testing.T) {
	arch := archOf[runtime.GOARCH]
	many := []uintptr{unix.SYS_CONNECT, unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT2}
	for _, calls := range [][]uintptr{many[:1], many} {
		for _, sockets := range []bool{false, true} {
			text, err := Asking(calls, sockets)
			f := newFilter(t, text, err)
			for number := range uint32(600) {
				want := ok
				switch {
				case slices.Contains(ring, uintptr(number)):
					want = enosys
				case slices.Contains(calls, uintptr(number)):
					want = asked
				}
				if got := f.verdict(arch, number, unix.AF_UNIX); got != want {
					t.Errorf("%d calls: call %d: got %#x, want %#x", len(calls), number, got, want)
				}
			}
			for family, network := range map[uint32]bool{unix.AF_UNIX: false, unix.AF_INET: true, unix.AF_INET6: true, unix.AF_NETLINK: false} {
				want := ok
				if network && sockets {
					want = asked
				}
				if got := f.verdict(arch, unix.SYS_SOCKET, family); got != want {
					t.Errorf("sockets %t, family %d: got %#x, want %#x", sockets, family, got, want)
				}
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
