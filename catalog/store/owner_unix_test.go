//go:build unix

package store

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestFileThatOthersCanWriteIsNotRead(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1))
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(files); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("got %v", err)
	}
	if err := os.Chmod(dirOf(s), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := s.Keep(files, listing(`{"name":"new"}`)); err == nil || !strings.Contains(err.Error(), "others can write to it") {
		t.Errorf("got %v", err)
	}
}

func TestFileOfAnotherUserIsNotRead(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	s, path := kept(t, listing(read1))
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(files); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("got %v", err)
	}
}

func TestPipeDoesNotHang(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(files); err == nil {
		t.Error("a pipe is read without an error")
	}
}

// The temporary file of an interrupted write is no listing. A later write removes it when it
// is old.
func TestWriteThatWasCutShort(t *testing.T) {
	t.Parallel()
	s, path := kept(t, listing(read1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dirOf(s), "."+filepath.Base(path)+".OLD")
	young := filepath.Join(dirOf(s), "."+filepath.Base(path)+".YOUNG") // another process may be writing it
	for _, left := range []string{old, young} {
		if err := os.WriteFile(left, whole[:len(whole)/2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * abandoned)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	load(t, s)
	if err := s.Keep(files, listing(`{"name":"new"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old temporary file is still there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}
