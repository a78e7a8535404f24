//go:build unix

package regular

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	fifo, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, link, "/dev/zero"} {
		if _, err := Read(t.Context(), path, Small); err == nil || err.Error() != path+" is not a regular file" {
			t.Errorf("%s: got %v", path, err)
		}
		if _, _, err := ReadOrPipe(t.Context(), path, Small); err == nil {
			t.Errorf("%s is read as a pipe of the shell", path)
		}
	}
	// A named pipe may take the place of the file between Stat and open, which must not block.
	file, err := open(fifo, false)
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
}

func TestReadNoFollow(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), link, Small); err != nil {
		t.Error(err)
	}
	if _, err := ReadNoFollow(t.Context(), link, Small, nil); err == nil {
		t.Error("a link is read")
	}
	if file, err := open(link, true); err == nil {
		file.Close()
		t.Error("a link is opened")
	}
}

// Reads that hang end with their context, and use no more threads than the limit of reads.
func TestReadsThatHang(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	const n = 80
	for range n {
		go func() {
			_, _, err := ReadOrPipe(ctx, path, Small)
			ended <- err
		}()
	}
	for len(reads) < cap(reads) {
		runtime.Gosched()
	}
	cancel()
	for range n {
		if err := <-ended; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
	w.Close() // the abandoned ones end
	for range cap(reads) {
		reads <- struct{}{}
	}
	for range cap(reads) {
		<-reads
	}
}
