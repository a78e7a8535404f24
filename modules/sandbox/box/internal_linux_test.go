package box

import (
	"encoding/binary"
	"net"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/sandbox"
)

func TestPathsOfEntries(t *testing.T) {
	for path, want := range map[string]string{
		"~": "/home/u", "~/": "/home/u", "~/x/../y": "/home/u/y", "~other/x": "/work/~other/x", "x": "/work/x", "../x": "/x", "/x/../y": "/y", ".": "/work",
	} {
		if got := absolute(path, "/work", "/home/u"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// A call is recorded with the flags that it has, in an argument or behind one.
func TestFlagsOfCalls(t *testing.T) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	how := binary.NativeEndian.AppendUint64(nil, unix.O_CREAT)
	for _, c := range []struct {
		number uintptr
		args   [6]uint64
		want   uint64
	}{
		{unix.SYS_OPENAT, [6]uint64{1, 2, unix.O_WRONLY, 4}, unix.O_WRONLY},
		{unix.SYS_OPENAT2, [6]uint64{1, 2, uint64(uintptr(unsafe.Pointer(&how[0]))), 24}, unix.O_CREAT},
		{unix.SYS_OPENAT2, [6]uint64{1, 2, 8, 24}, 0},
		{unix.SYS_EXECVE, [6]uint64{1, 2, 3, 4}, 0},
	} {
		i := slices.IndexFunc(tracedCalls, func(call tracedCall) bool { return call.number == c.number })
		if got := flagsOf(memory, &notification{args: c.args}, tracedCalls[i]); got != c.want {
			t.Errorf("call %d: got %#x, want %#x", c.number, got, c.want)
		}
	}
}

// A listener is made for a trace, and for a gate where the system can ask.
func TestWhatListens(t *testing.T) {
	for _, c := range []struct {
		network     sandbox.Network
		trace       *Trace
		listens     bool
		gate, noNet bool
	}{
		{sandbox.AllNetwork, nil, false, false, false}, {sandbox.NoNetwork, nil, false, false, false}, {sandbox.OnlyByProxy, nil, sandbox.HasNotifications(), true, false},
		{sandbox.AllNetwork, &Trace{}, true, false, false}, {sandbox.NoNetwork, &Trace{}, true, false, true}, {sandbox.OnlyByProxy, &Trace{}, true, true, false},
		{sandbox.NoNetwork, &Trace{Learn: true}, true, false, false}, {sandbox.OnlyByProxy, &Trace{Learn: true}, true, false, false},
	} {
		b := &Sandbox{learns: c.trace != nil && c.trace.Learn}
		if c.network == sandbox.OnlyByProxy {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			b.proxy = &proxy{door: &door{Listener: listener}}
		}
		if err := b.listen(Server{Network: c.network, Trace: c.trace}); err != nil {
			t.Fatal(err)
		}
		if l := b.listener; (l != nil) != c.listens || l != nil && (l.trace != c.trace || (l.gate != nil) != c.gate || l.noNetwork != c.noNet) {
			t.Errorf("%+v: got %+v", c, l)
		}
		b.listener.close()
		if c.listens && c.trace != nil && c.trace.Err() == nil {
			t.Errorf("%+v: a start that was not traced leaves no error", c)
		}
	}
}

// A place is free again when its connection ends, of a stranger or not, and only once.
func TestPlacesAreGivenBack(t *testing.T) {
	d := &door{}
	enter := func() *visitor {
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		v := &visitor{Conn: near, door: d}
		if oldest := d.enter(v); oldest != nil {
			t.Fatal("a stranger had to leave")
		}
		return v
	}
	for range 3 {
		var all []*visitor
		for range maxConnections {
			v := enter()
			first, again := d.admit(v), d.admit(v)
			if !first || !again {
				t.Fatalf("of %d connections %d are admitted", maxConnections, len(all))
			}
			all = append(all, v)
		}
		if d.admit(enter()) {
			t.Fatal("one too many is admitted")
		}
		first, second := enter(), enter()
		first.Close()
		if !slices.Contains(d.strangers, second) || slices.Contains(d.strangers, first) {
			t.Error("another stranger has left")
		}
		for _, v := range append(all, d.strangers...) {
			v.Close()
			v.Close()
		}
		if d.known != 0 || len(d.strangers) != 0 {
			t.Fatalf("%d connections and %d strangers are left", d.known, len(d.strangers))
		}
		if v := first; d.admit(v) {
			t.Error("one that has left is admitted")
		}
	}
}
