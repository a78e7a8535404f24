package pipes

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Lines of any length are read as they were written.
func TestLines(t *testing.T) {
	r, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var lines [][]byte
	for n := range 600 {
		size := []int{0, 10, 5 << 10, 70 << 10, 3 << 20}[n%5*min(1, n%7)]
		lines = append(lines, append(bytes.Repeat([]byte{byte('a' + n%20)}, size), '\n'))
	}
	written := make(chan error, 1)
	go func() {
		w := NewWriter(theirs, true)
		for n, line := range lines {
			err = errors.Join(err, w.Add(line))
			if n%11 == 0 {
				err = errors.Join(err, w.Flush())
			}
		}
		written <- errors.Join(err, w.Flush(), theirs.Close())
	}()
	in := NewReader(r, true)
	for n, want := range lines {
		if got, err := in.Next(); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("line %d: got %d bytes, %v, want %d", n, len(got), err, len(want))
		}
	}
	if _, err := in.Next(); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
