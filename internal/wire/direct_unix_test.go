//go:build unix

package wire

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// All parts leave in one write.
func TestDirectWritesAllParts(t *testing.T) {
	r, dst := pipe(t)
	n := newDirect(dst).write(&queue{}, [][]byte{[]byte("one"), []byte("two")}, newline)
	if got := readOnce(t, r); n != len(got) || got != "onetwo\n" {
		t.Errorf("wrote %d bytes, got %q", n, got)
	}
}

// A message that is sent while another sender writes is written too, without a later send.
func TestSentDuringADirectWrite(t *testing.T) {
	r, dst := pipe(t)
	var w *Writer
	first := false
	w = NewWriter(slowFile{dst, func() {
		if !first {
			return
		}
		first = false
		w.Send([]byte("two"))
		for len(w.wake) > 0 { // until the goroutine has seen that there is nothing for it yet
			runtime.Gosched()
		}
	}}, 0)
	defer w.Close()
	idle := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.writing
	}
	for range 100 {
		for !idle() { // what is sent while the goroutine writes is not written directly
			runtime.Gosched()
		}
		first = true
		w.Send([]byte("one"))
		for got := ""; got != "one\ntwo\n"; {
			got += readOnce(t, r)
		}
	}
}

// A slowFile calls slow before each direct write.
type slowFile struct {
	*os.File
	slow func()
}

func (f slowFile) SyscallConn() (syscall.RawConn, error) {
	raw, err := f.File.SyscallConn()
	return slowConn{raw, f.slow}, err
}

type slowConn struct {
	syscall.RawConn
	slow func()
}

func (c slowConn) Write(write func(uintptr) bool) error {
	c.slow()
	return c.RawConn.Write(write)
}

// A message that is being written without a copy waits as well.
func TestADirectWriteCountsAsWaiting(t *testing.T) {
	r, dst := pipe(t)
	var w *Writer
	waiting := 0
	w = NewWriter(slowFile{dst, func() { waiting = w.Waiting() }}, 0)
	defer w.Close()
	const size = blockSize // with the newline
	w.Send(make([]byte, size-1))
	if waiting != size {
		t.Errorf("%d bytes wait during the write, want %d", waiting, size)
	}
	for got := 0; got < size; {
		got += len(readOnce(t, r))
	}
}
