package box

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
