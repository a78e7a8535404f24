package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience bounds the wait for what must happen.
const patience = 2 * time.Minute

// pipe returns a pipe whose ends are closed when the test is over: the reader first, because on
// Windows closing the other end waits for a write.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// readOnce returns the bytes of one read.
func readOnce(t *testing.T, r *os.File) string {
	t.Helper()
	_ = r.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 1<<16)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// corked returns a Writer on a pipe, with a Cork, and the pipe's other end.
func corked(t *testing.T) (c *Cork, w *Writer, r *os.File) {
	t.Helper()
	r, dst := pipe(t)
	c, w = &Cork{}, NewWriter(dst, 0)
	w.Cork = c
	t.Cleanup(func() { w.Close() })
	return c, w, r
}

func TestCorkLetsOutInOneWrite(t *testing.T) {
	c, w, r := corked(t)
	c.Delay()
	for _, text := range []string{"one", "two"} {
		if err := w.Send([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SendRequest(0, 7, "x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	want := "one\ntwo\n" + `{"jsonrpc":"2.0","id":7,"method":"x","params":{}}` + "\n"
	if got := w.Waiting(); got != len(want) {
		t.Errorf("%d bytes are held back, want %d", got, len(want))
	}
	c.Release(nil)
	if got := readOnce(t, r); got != want {
		t.Errorf("got %q in the first read, want %q", got, want)
	}
	w.Send([]byte("three")) // nobody holds
	if got := readOnce(t, r); got != "three\n" {
		t.Errorf("got %q without a hold", got)
	}
}

// Any Release writes everything: the messages of one holder do not wait for another.
func TestReleaseWritesWhatOthersSent(t *testing.T) {
	c, w1, r1 := corked(t)
	_, w2, r2 := corked(t)
	w2.Cork = c
	c.Delay()
	c.Delay()
	w1.Send([]byte("one"))
	w2.Send([]byte("two"))
	c.Release(nil)
	if got := readOnce(t, r1) + readOnce(t, r2); got != "one\ntwo\n" {
		t.Errorf("got %q after the first release", got)
	}
	w1.Send([]byte("three"))
	w1.Send([]byte("four"))
	c.Release(nil)
	if got := readOnce(t, r1); got != "three\nfour\n" {
		t.Errorf("got %q after the second release", got)
	}
}

// While others hold the Cork, a Release leaves the messages to the caller's own peer to
// them.
func TestReleaseLeavesItsOwnToOthers(t *testing.T) {
	c, back, r1 := corked(t)
	_, other, r2 := corked(t)
	other.Cork = c
	c.Delay()
	c.Delay()
	back.Send([]byte("one"))
	other.Send([]byte("two"))
	c.Release(back)
	if got := readOnce(t, r2); got != "two\n" || back.Waiting() != len("one\n") {
		t.Errorf("got %q, and %d bytes wait", got, back.Waiting())
	}
	back.Send([]byte("three"))
	c.Release(back) // nobody holds any more
	if got := readOnce(t, r1); got != "one\nthree\n" {
		t.Errorf("got %q", got)
	}
}

func TestNilCorkHoldsNothing(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, 0)
	defer w.Close()
	var c *Cork
	c.Delay()
	w.Send([]byte("one"))
	if got := readOnce(t, r); got != "one\n" {
		t.Errorf("got %q", got)
	}
	c.Release(nil)
}

func TestCorkDoesNotHoldMoreThanAPipeTakes(t *testing.T) {
	c, w, r := corked(t)
	c.Delay()
	defer c.Release(nil)
	half := bytes.Repeat([]byte("x"), blockSize/2-1)
	w.Send(half)
	if got := w.Waiting(); got != blockSize/2 {
		t.Errorf("%d bytes are held back", got)
	}
	w.Send(half)
	if got := readOnce(t, r); !strings.HasPrefix(got, string(half)) {
		t.Errorf("got %.10q", got)
	}
}

// Close writes what is held back.
func TestCloseDoesNotWaitForRelease(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, 0)
	w.Cork = &Cork{}
	w.Cork.Delay()
	w.Send([]byte("one"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Cork.Release(nil)
	dst.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "one\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Some senders hold the Cork and some do not. All messages of each sender arrive, in its
// order, at both writers, although nobody releases but the holders.
func TestCorkLosesNothing(t *testing.T) {
	const senders, messages = 8, 2000
	c, w1, r1 := corked(t)
	_, w2, r2 := corked(t)
	w2.Cork = c
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := 0; n < messages; {
				holds := s%2 == 0
				if holds {
					c.Delay()
				}
				for range 1 + n%7 {
					if n++; n > messages {
						break
					}
					text := fmt.Appendf(nil, "%d %d", s, n)
					if err := errors.Join(w1.Send(text), w2.Send(text)); err != nil {
						t.Error(err)
					}
				}
				if holds {
					c.Release(nil)
				}
			}
		})
	}
	for _, r := range []*os.File{r1, r2} {
		wg.Go(func() {
			_ = r.SetReadDeadline(time.Now().Add(patience))
			last := [senders]int{}
			lines := bufio.NewScanner(r)
			for left := senders * messages; left > 0 && lines.Scan(); left-- {
				var s, n int
				if _, err := fmt.Sscan(lines.Text(), &s, &n); err != nil || n != last[s]+1 {
					t.Errorf("got %q behind %d of sender %d: %v", lines.Text(), last[s], s, err)
				}
				last[s] = n
			}
			for s, n := range last {
				if n != messages {
					t.Errorf("%d of %d messages of sender %d arrived", n, messages, s)
				}
			}
		})
	}
	wg.Wait()
}

// Messages of others must not wait while a message of megabytes is checked.
func TestReaderHoldsNoCorkForALongMessage(t *testing.T) {
	c, w, out := corked(t)
	text := `{"jsonrpc":"2.0","id":1,"result":"` + strings.Repeat("x", 1<<20) + `"}` + "\n"
	r := NewReader(strings.NewReader(text+text), 1<<24)
	r.Cork = c
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if err := w.Send([]byte("another's")); err != nil {
			t.Fatal(err)
		}
		if got := readOnce(t, out); got != "another's\n" {
			t.Errorf("got %q", got)
		}
	}
}

// What is sent while the messages of one read are handled leaves in one write, before the
// reader waits again.
func TestReaderCorksWhatOneReadLeadsTo(t *testing.T) {
	c, w, r := corked(t)
	var writes []string
	parts := []string{one + "\n" + two + "\n", two + "\n" + one, ""}
	in := NewReader(readerFunc(func(p []byte) (int, error) {
		if len(parts) < 3 {
			writes = append(writes, readOnce(t, r))
		}
		part := parts[0]
		parts = parts[1:]
		if part == "" {
			return 0, io.EOF
		}
		return copy(p, part), nil
	}), 1000)
	in.Cork = c
	in.Idle = func() {
		if held := c.delays.Load(); held != 0 {
			t.Errorf("%d holds while it is idle", held)
		}
	}
	for {
		if _, err := in.Next(); err != nil {
			break
		}
		w.Send([]byte("x"))
	}
	writes = append(writes, readOnce(t, r))
	if diff := cmp.Diff([]string{"x\nx\n", "x\n", "x\n"}, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if held := c.delays.Load(); held != 0 {
		t.Errorf("%d holds are left", held)
	}
}

func TestUncorkEndsTheHoldOfAReader(t *testing.T) {
	c, w, r := corked(t)
	in := NewReader(strings.NewReader(one+"\n"+two+"\n"), 1000)
	in.Cork = c
	for range 2 { // the second message came with the first: nothing is held any more
		if _, err := in.Next(); err != nil {
			t.Fatal(err)
		}
		w.Send([]byte("x"))
		in.Uncork()
		in.Uncork()
		if got := readOnce(t, r); got != "x\n" {
			t.Errorf("got %q", got)
		}
	}
	if held := c.delays.Load(); held != 0 {
		t.Errorf("%d holds are left", held)
	}
}

// Idle is called when every complete message was returned, even if the next one has begun.
func TestReaderIsIdleBeforeItWaits(t *testing.T) {
	parts := []string{one + "\n" + two + "\n{\n", `"jsonrpc":"2.0","id":1,"method":"a"` + "\n}\n" + one, ""}
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
