package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A sink records what is written to it.
type sink struct {
	step chan struct{} // each write waits for a token; nil blocks no write

	mu   sync.Mutex
	data bytes.Buffer
}

func (s *sink) Write(p []byte) (int, error) {
	if s.step != nil {
		<-s.step
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.String()
}

func TestWriterKeepsOrder(t *testing.T) {
	dst := &sink{}
	w := NewWriter(dst, time.Second)
	var want strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&want, "message %d\n", n)
		if err := w.Send([]byte("message "), fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := dst.String(); got != want.String() {
		t.Errorf("got %d bytes, want %d: %.100q…", len(got), want.Len(), got)
	}
}

// A message that is sent during a write must not land in the buffer that is being written. It
// did after a pause: the spare buffer was the queue then.
func TestWriterSendsDuringWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &sink{step: make(chan struct{})}
		w := NewWriter(dst, 0)
		send := func(text string) {
			t.Helper()
			if err := w.Send([]byte(text)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		send("one")
		dst.step <- struct{}{}
		synctest.Wait()
		send("two")
		send("XXX") // while two is being written
		close(dst.step)
		w.Close()
		if got, want := dst.String(), "one\ntwo\nXXX\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestWriterRefusesOverLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &sink{step: make(chan struct{})}
		w := NewWriter(dst, 0)
		big := bytes.Repeat([]byte("x"), 100)
		w.Send(big)
		synctest.Wait() // it is being written, and counts
		if err := w.SendWithin(101, big); err != nil {
			t.Errorf("at the limit: %v", err)
		}
		if err := w.SendWithin(101, big); !errors.Is(err, ErrFull) {
			t.Errorf("over the limit: got %v, want %v", err, ErrFull)
		}
		if err := w.Send(big); err != nil {
			t.Errorf("without a limit: %v", err)
		}
		close(dst.step)
		w.Close()
		if got := len(dst.String()); got != 303 {
			t.Errorf("%d bytes written, want 303", got)
		}
	})
}

func TestWriterCloseFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &sink{step: make(chan struct{})}
		w := NewWriter(dst, 0)
		w.Send([]byte("a"))
		synctest.Wait()
		w.Send([]byte("b"))
		go func() {
			synctest.Wait()
			close(dst.step)
		}()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if got, want := dst.String(), "a\nb\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := w.Send([]byte("c")); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: got %v, want %v", err, ErrClosed)
		}
		if err := w.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	})
}

type brokenSink struct{ err error }

func (s brokenSink) Write([]byte) (int, error) { return 0, s.err }

func TestWriterKeepsItsError(t *testing.T) {
	cause := errors.New("broken pipe")
	w := NewWriter(brokenSink{cause}, time.Second)
	w.Send([]byte("a"))
	<-w.Done()
	w.WaitBelow(0)
	if err := w.Send([]byte("b")); !errors.Is(err, cause) {
		t.Errorf("Send: got %v, want %v", err, cause)
	}
	if err := w.Close(); !errors.Is(err, cause) {
		t.Errorf("Close: got %v, want %v", err, cause)
	}
}

func TestWriterWaitBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dst := &sink{step: make(chan struct{})}
		w := NewWriter(dst, 0)
		w.Send([]byte("aaaa"))
		synctest.Wait()
		w.Send([]byte("bbbb"))
		below := make(chan bool)
		go func() {
			w.WaitBelow(5)
			close(below)
		}()
		synctest.Wait()
		select {
		case <-below:
			t.Error("returned with 10 bytes waiting")
		default:
		}
		dst.step <- struct{}{}
		<-below
		close(dst.step)
		w.Close()
	})
}

// A pipe has deadlines, except on Windows: the goroutine ends with the stall.
func TestWriterBreaksOnStalledPipe(t *testing.T) {
	_, dst := pipe(t)
	w := NewWriter(dst, 20*time.Millisecond)
	w.Send(make([]byte, 1<<20))
	if err := w.Close(); !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, ErrStalled) {
		t.Errorf("got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// A reader that takes less than a part within the stall time is slow, not dead.
func TestWriterKeepsSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, pipe := net.Pipe()
		w := NewWriter(pipe, 500*time.Millisecond)
		const size = 256 << 10
		w.Send(bytes.Repeat([]byte("x"), size))
		read := make(chan int)
		go func() {
			total, buf := 0, make([]byte, 8<<10)
			for {
				n, err := r.Read(buf)
				total += n
				if err != nil {
					read <- total
					return
				}
				time.Sleep(75 * time.Millisecond) // a part of 64 KiB takes longer than the stall time
			}
		}()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		pipe.Close()
		if got := <-read; got != size+1 {
			t.Errorf("%d bytes came, want %d", got, size+1)
		}
	})
}

// Without deadlines a stalled write cannot be interrupted, but nobody waits for it.
func TestWriterBreaksOnStallWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refuses := range []bool{false, true} {
			r, pipe := io.Pipe()
			var dst io.Writer = pipe
			if refuses {
				dst = refusesDeadlines{pipe}
			}
			w := NewWriter(dst, time.Minute)
			began := time.Now()
			w.Send([]byte("a"))
			if err := w.Close(); !errors.Is(err, ErrStalled) {
				t.Errorf("%T: got %v, want %v", dst, err, ErrStalled)
			}
			if took := time.Since(began); took != time.Minute {
				t.Errorf("%T: it took %v", dst, took)
			}
			r.Close() // lets the goroutine go
		}
	})
}

// refusesDeadlines is like a file that is not a pipe.
type refusesDeadlines struct{ io.Writer }

func (refusesDeadlines) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// A request that is larger than the pipe arrives whole.
func TestWriterLargeRequest(t *testing.T) {
	r, dst := pipe(t)
	w := NewWriter(dst, patience)
	defer w.Close()
	params := []byte(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
	if err := w.SendRequest(0, 7, "m", params[:1000], params[1000:]); err != nil {
		t.Fatal(err)
	}
	if got := w.Waiting(); got < 2<<20 { // a pipe takes a megabyte at most
		t.Errorf("%d bytes wait", got)
	}
	if m, err := NewReader(r, 16<<20).Next(); err != nil || string(m.Raw) != join(Request(7, "m", params)) {
		t.Errorf("got %d bytes, %v", len(m.Raw), err)
	}
}

func TestWriterBreak(t *testing.T) {
	_, dst := pipe(t)
	cause := errors.New("time is up")
	w := NewWriter(dst, time.Hour)
	w.Send(make([]byte, 1<<20))
	w.Break(cause)
	if err := w.Close(); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}

func TestWriterManySenders(t *testing.T) {
	dst := &sink{}
	w := NewWriter(dst, time.Second)
	var senders sync.WaitGroup
	for s := range 8 {
		senders.Go(func() {
			for n := range 500 {
				if err := w.SendWithin(1<<20, fmt.Appendf(nil, "%d %d", s, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	w.Close()
	next := make([]int, 8)
	for line := range strings.Lines(dst.String()) {
		var s, n int
		if _, err := fmt.Sscanf(line, "%d %d\n", &s, &n); err != nil || n != next[s] {
			t.Fatalf("line %q: sender %d is at %d (%v)", line, s, next[s], err)
		}
		next[s]++
	}
	for s, n := range next {
		if n != 500 {
			t.Errorf("sender %d: %d lines", s, n)
		}
	}
}

type panicking struct{}

func (panicking) Write([]byte) (int, error) { panic("boom") }

func TestWriterSurvivesPanic(t *testing.T) {
	w := NewWriter(panicking{}, time.Second)
	w.Send([]byte("a"))
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v, want the panic", err)
	}
}

// Messages in pieces of any length arrive whole and in order, through a pipe that is full
// most of the time.
func TestWriterPieces(t *testing.T) {
	r, dst := pipe(t)
	const senders, messages = 4, 30
	w := NewWriter(dst, 10*time.Second)
	var sending sync.WaitGroup
	for s := range senders {
		sending.Go(func() {
			random := rand.New(rand.NewPCG(uint64(s), 1))
			for n := range messages {
				text := message(random, s, n)
				if err := w.Send(cut(random, text)...); err != nil {
					t.Error(err)
				}
				clear(text) // it is the sender's again
			}
		})
	}
	go func() {
		sending.Wait()
		w.Close()
		dst.Close()
	}()
	want := make([]*rand.Rand, senders)
	for s := range want {
		want[s] = rand.New(rand.NewPCG(uint64(s), 1))
	}
	next := make([]int, senders)
	lines := bufio.NewReaderSize(r, 1<<20)
	for range senders * messages {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var s, n int
		if _, err := fmt.Sscanf(line, "{%d %d ", &s, &n); err != nil || n != next[s] {
			t.Fatalf("got %.40q, message %d of sender %d is next", line, next[s], s)
		}
		text := message(want[s], s, n)
		cut(want[s], text) // draws what the sender drew
		if line != string(text)+"\n" {
			t.Fatalf("message %d of sender %d changed: %d bytes of %d", n, s, len(line), len(text))
		}
		next[s]++
	}
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("%d bytes too many, %v", len(rest), err)
	}
}

// message draws a text of any length.
func message(random *rand.Rand, s, n int) []byte {
	text := fmt.Appendf(nil, "{%d %d ", s, n)
	size := []int{10, 1000, blockSize - 20, blockSize + 10, 3 * blockSize, 2 << 20}[random.IntN(6)]
	for len(text) < size {
		text = append(text, "0123456789abcdef\\\"0123456789abcdef"[random.IntN(17):]...)
	}
	return append(text, '}')
}

// cut cuts anywhere.
func cut(random *rand.Rand, text []byte) [][]byte {
	var pieces [][]byte
	for len(text) > 0 {
		n := 1 + random.IntN(len(text))
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}
