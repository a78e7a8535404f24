package wire

import (
	"bytes"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func capacityOf(t *testing.T, f *os.File) int {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	if err := raw.Control(func(fd uintptr) { size, err = unix.FcntlInt(fd, unix.F_GETPIPE_SZ, 0) }); err != nil {
		t.Fatal(err)
	}
	return size
}

// A busy pipe is widened from either end, and an idle one is not. The extra size counts until
// the connection ends.
func TestBusyPipesAreWidened(t *testing.T) {
	if allowance() < 8*widest {
		t.Skip("this user's pipes may not be wide")
	}
	before := widened.Load()
	r, dst := pipe(t)
	usual := capacityOf(t, r)
	w := NewWriter(dst, 0)
	w.Send([]byte("one"))
	if got := capacityOf(t, r); got != usual {
		t.Errorf("%d bytes after a small message, want %d", got, usual)
	}
	line := append(append([]byte(`{"jsonrpc":"2.0","method":"`), bytes.Repeat([]byte("x"), 3<<20)...), `"}`...)
	sent := make(chan error, 1)
	go func() { sent <- w.Send(line) }()
	in := NewReader(r, 16<<20)
	if _, err := in.Next(); err == nil { // "one"
		t.Error("a message, want a fault")
	}
	if m, err := in.Next(); err != nil || !bytes.Equal(m.Raw, line) {
		t.Errorf("got %d bytes, %v", len(m.Raw), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if got := capacityOf(t, r); got <= usual {
		t.Errorf("%d bytes after a large message", got)
	}
	if got, want := widened.Load()-before, int64(capacityOf(t, r)-usual); got != want {
		t.Errorf("%d bytes more are counted, want %d", got, want)
	}
	w.Close()
	dst.Close()
	if _, err := in.Next(); err != io.EOF {
		t.Error(err)
	}
	if got := widened.Load(); got != before {
		t.Errorf("%d bytes are counted when it is over, want %d", got, before)
	}
}

// A Reader widens its pipe after a read of at least busyRead bytes.
func TestReaderWidensABusyPipe(t *testing.T) {
	if allowance() < 8*widest {
		t.Skip("this user's pipes may not be wide")
	}
	for size, wide := range map[int]bool{busyRead - 1: false, busyRead: true} {
		r, dst := pipe(t)
		usual := capacityOf(t, r)
		if _, err := dst.Write(append(bytes.Repeat([]byte(" "), size-len(one)-1), one+"\n"...)); err != nil {
			t.Fatal(err)
		}
		in := NewReader(r, 1<<20)
		if _, err := in.Next(); err != nil {
			t.Fatal(err)
		}
		if got := capacityOf(t, r); got > usual != wide {
			t.Errorf("the pipe holds %d bytes after a read of %d, and %d before", got, size, usual)
		}
		in.pipe.release()
	}
}

// Pipes share the allowance: the more of them are wide, the less the next one gets.
func TestPipesShareTheAllowance(t *testing.T) {
	before := widened.Load()
	defer widened.Store(before)
	for _, test := range []struct {
		left int64
		wide bool
	}{{8 * widest, true}, {8*narrowest + 1, true}, {8*narrowest - 1, false}, {0, false}} {
		widened.Store(allowance() - test.left)
		r, _ := pipe(t)
		end := newPipeEnd(r)
		if got := end.widen(); got != test.wide {
			t.Errorf("with %d bytes left: widened %t, want %t", test.left, got, test.wide)
		}
		if got := int64(capacityOf(t, r)); test.wide && got > max(narrowest, test.left/8) {
			t.Errorf("with %d bytes left: %d bytes", test.left, got)
		}
		widened.Store(before)
		if again := newPipeEnd(r); test.wide && test.left == 8*widest && again.widen() {
			t.Error("it is widened twice")
		}
	}
}

// The allowance is half of the system's limit, unlimited without one, and nothing if the limit
// cannot be read.
func TestAllowance(t *testing.T) {
	for text, want := range map[string]int64{"16384\n": 8192 * int64(os.Getpagesize()), "0\n": 1 << 40, "": 0} {
		if got := allowanceOf([]byte(text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
