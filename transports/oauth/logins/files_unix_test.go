//go:build unix

package logins

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stoppedHolder starts a process that takes the lock, and stops it. goOn continues the process
// and waits for its end.
func stoppedHolder(t *testing.T, store *Store) (goOn func()) {
	t.Helper()
	holder := exec.CommandContext(deadline(t), os.Args[0])
	holder.Env = append(os.Environ(), lockerDir+"="+dirOf(store))
	in, err1 := holder.StdinPipe()
	out, err2 := holder.StdoutPipe()
	if err := errors.Join(err1, err2, holder.Start()); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	if err := holder.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = holder.Process.Signal(syscall.SIGCONT)
		in.Close()
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// A caller that waits for the lock of a stopped process blocks no thread and leaks no goroutine.
// It gets the lock after that process has ended.
func TestLockOfAStoppedProcess(t *testing.T) {
	store := NewFiles(t.TempDir() + "/logins")
	goOn := stoppedHolder(t, store)
	threads := pprof.Lookup("threadcreate")
	lock := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		defer cancel()
		if _, _, err := store.Lock(ctx, aKey); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another dynmcp holds the lock") {
			t.Fatalf("got %v", err)
		}
	}
	lock()
	goroutines, before := runtime.NumGoroutine(), threads.Count()
	for range 100 {
		lock()
	}
	if got := runtime.NumGoroutine(); got > goroutines+2 {
		t.Errorf("%d goroutines, %d before", got, goroutines)
	}
	if got := threads.Count(); got > before+10 {
		t.Errorf("%d threads, %d before", got, before)
	}
	goOn()
	_, unlock, err := store.Lock(deadline(t), aKey)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
