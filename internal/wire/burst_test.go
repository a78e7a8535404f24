package wire

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
)

// pipe returns a pipe whose ends are closed when the test is over.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// readOnce returns what one read gets.
func readOnce(t *testing.T, r *os.File) string {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

func TestBurstLeavesInOneWrite(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, 0)
	defer w.Close()
	var b Burst
	for _, text := range []string{"one", "two"} {
		if err := w.SendWithin(&b, 0, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SendRequest(&b, 0, 7, "x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	b.Flush()
	want := "one\ntwo\n" + `{"jsonrpc":"2.0","id":7,"method":"x","params":{}}` + "\n"
	if got := readOnce(t, r); got != want {
		t.Errorf("got %q in the first read, want %q", got, want)
	}
	b.Flush() // of nothing
}

func TestBurstKeepsOrderWithWhatIsSentAtOnce(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, 0)
	var b Burst
	w.SendWithin(&b, 0, []byte("one"))
	w.Send([]byte("two"))
	w.SendWithin(&b, 0, []byte("three"))
	w.Close()
	b.Flush() // of a writer that is closed
	dst.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "one\ntwo\nthree\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBurstDoesNotHoldMoreThanAPipeTakes(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, 0)
	defer w.Close()
	var b Burst
	w.SendWithin(&b, 0, bytes.Repeat([]byte("x"), readChunk-1))
	if got := readOnce(t, r); !strings.HasPrefix(got, "xxx") {
		t.Errorf("got %.10q", got)
	}
}

// The reader says that it is about to wait when all that came whole was
// returned, also where a message has begun.
func TestReaderIsIdleBeforeItWaits(t *testing.T) {
	parts := []string{one + "\n" + two + "\n{\n", `"jsonrpc":"2.0","id":1,"method":"a"}` + "\n" + one, ""}
	var steps []string
	r := NewReader(readerFunc(func(p []byte) (int, error) {
		part := parts[0]
		parts = parts[1:]
		if part == "" {
			return 0, io.EOF
		}
		return copy(p, part), nil
	}), 1000)
	r.Idle = func() { steps = append(steps, "idle") }
	for {
		if _, err := r.Next(); err != nil {
			break
		}
		steps = append(steps, "message")
	}
	got, want := strings.Join(steps, " "), "idle message message idle message idle message"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
