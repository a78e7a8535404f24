//go:build unix

package oauth

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

	"github.com/dynmcp/dynmcp/internal/mcptest"
)

// stoppedHolder starts a process that takes the lock, and stops it. goOn continues the process
// and waits for its end.
func stoppedHolder(t *testing.T, store *LoginStore) (goOn func()) {
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
	store := NewStore(t.TempDir() + "/logins")
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

// If a lock is held for too long, only the first request of a session waits for it.
func TestPauseAfterALockThatIsHeld(t *testing.T) {
	as := mcptest.NewAuthServer(t, mcptest.AuthOptions{})
	server := serverOf(as, nil)
	server.Name, server.URL = aKey.Server, as.URL
	store := loggedIn(t, server)
	age(t, store, server, -time.Second)
	_, unlock, err := store.Lock(deadline(t), KeyOf(server))
	if err != nil {
		t.Fatal(err)
	}
	_, session := clientFor(t, store, server)
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := session.renewOnce(short, ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	next, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := session.renewOnce(next, ""); err == nil || !strings.Contains(err.Error(), "the next is due in") {
		t.Errorf("got %v", err)
	}
	unlock()
	session.mu.Lock()
	session.retryAt = time.Time{} // the pause is over
	session.mu.Unlock()
	if _, err := session.renewOnce(deadline(t), ""); err != nil || as.Count("refresh") != 1 {
		t.Errorf("got %v, %d refreshes", err, as.Count("refresh"))
	}
}
