package guard_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard"
)

func init() { roles["move a fence"] = moveAFence }

// fenced is a tree that is hard to kill: no process ends when asked, two have a session of their
// own, and one has no parent in the tree.
var fenced = hostile{"fenced", `trap "" TERM HUP; setsid sh -c 'sleep $0 &' $0; setsid sh -c 'sleep $0; :' $0 & sleep $0; :`, 5}

func newFence(t *testing.T) *guard.Fence {
	t.Helper()
	fence, err := guard.NewFence()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fence.Close)
	return fence
}

// extend moves a deadline and returns the earliest time at which it can pass.
func extend(fence *guard.Fence, away time.Duration) (earliest time.Time) {
	before := time.Now()
	fence.Extend(before.Add(away))
	return before.Add(away - time.Since(before))
}

// startFenced starts the fenced tree, and calls inTime when it is complete, before the deadline.
// On a slow machine it tries again with twice the time.
func startFenced(t *testing.T, inTime func(*guard.Fence, *guard.Tree)) (tree *guard.Tree, marker string, deadline time.Time) {
	t.Helper()
	for away := time.Second; ; away *= 2 {
		fence, marker := newFence(t), newMarker(t)
		deadline := extend(fence, away)
		tree, err := guard.Start(command(t, "sh", "-c", fenced.script, marker), fence, nil)
		if errors.Is(err, guard.ErrFenced) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for len(marked(marker)) <= fenced.up && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		inTime(fence, tree)
		if time.Now().Before(deadline) {
			return tree, marker, deadline
		}
		tree.Kill()
		finish(t, "late", tree, marker)
	}
}

func TestATreeIsKilledAtTheDeadlineOfItsFence(t *testing.T) {
	t.Parallel()
	tree, marker, deadline := startFenced(t, func(*guard.Fence, *guard.Tree) {})
	if err := tree.Wait(); !errors.Is(err, guard.ErrFenced) {
		t.Errorf("got %v, want %v", err, guard.ErrFenced)
	}
	if early := time.Until(deadline); early > 0 {
		t.Errorf("%v before the deadline", early)
	}
	finish(t, "fenced", tree, marker)
}

// The guard sleeps until a deadline that was moved meanwhile.
func TestADeadlineThatIsMovedKillsNothing(t *testing.T) {
	t.Parallel()
	tree, marker, deadline := startFenced(t, func(fence *guard.Fence, _ *guard.Tree) {
		for range 1000 {
			extend(fence, time.Hour)
			extend(fence, time.Millisecond) // has no effect
		}
	})
	for time.Now().Before(deadline.Add(200 * time.Millisecond)) {
		time.Sleep(5 * time.Millisecond)
	}
	// A process has no arguments for a moment during execve.
	eventually(t, "all of it is alive", func() bool { return len(marked(marker)) > fenced.up })
	tree.Kill()
	if err := tree.Wait(); errors.Is(err, guard.ErrFenced) {
		t.Error(err)
	}
	finish(t, "moved", tree, marker)
}

func TestAGuardThatWasStoppedLooksAtTheDeadlineFirst(t *testing.T) {
	t.Parallel()
	var stopped int
	tree, marker, deadline := startFenced(t, func(_ *guard.Fence, tree *guard.Tree) {
		if stopped = guardOf(tree); stopped > 1 {
			_ = syscall.Kill(stopped, syscall.SIGSTOP)
		}
	})
	for time.Now().Before(deadline.Add(100 * time.Millisecond)) {
		time.Sleep(5 * time.Millisecond)
	}
	if err := syscall.Kill(stopped, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if err := tree.Wait(); !errors.Is(err, guard.ErrFenced) {
		t.Errorf("got %v, want %v", err, guard.ErrFenced)
	}
	finish(t, "continued", tree, marker)
}

func TestNothingStartsAfterTheDeadline(t *testing.T) {
	t.Parallel()
	fence := newFence(t)
	for _, away := range []time.Duration{-time.Hour, 0, -time.Second} {
		extend(fence, away)
		if _, err := guard.Start(command(t, "sh", "-c", "exit 0"), fence, nil); !errors.Is(err, guard.ErrFenced) {
			t.Errorf("got %v, want %v", err, guard.ErrFenced)
		}
	}
	fence.Close()
	fence.Extend(time.Now().Add(time.Hour))
	if _, err := guard.Start(command(t, "sh", "-c", "exit 0"), fence, nil); err == nil {
		t.Error("it started with a fence that is closed")
	}
}

// A command can open the files of this process through /proc.
func TestOthersCannotMoveTheDeadline(t *testing.T) {
	fence := newFence(t)
	extend(fence, time.Hour)
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		path := "/proc/self/fd/" + name.Name()
		if target, _ := os.Readlink(path); !strings.Contains(target, "dynmcp-fence") {
			continue
		}
		found++
		if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
			if seals, _ := unix.FcntlInt(file.Fd(), unix.F_GET_SEALS, 0); seals&unix.F_SEAL_FUTURE_WRITE == 0 {
				t.Skip("a kernel without this seal")
			}
			if _, err := file.WriteAt(make([]byte, 8), 0); err == nil {
				t.Error("it can be written")
			}
			if err := file.Truncate(0); err == nil {
				t.Error("it can be truncated")
			}
			file.Close()
		}
	}
	if found == 0 {
		t.Error("no file has the name of a fence")
	}
}

// The tree lives while the deadline is moved, and is killed while the process that moves it is
// stopped.
func TestTheTreeOfAProcessThatIsStopped(t *testing.T) {
	t.Parallel()
	for away := 400 * time.Millisecond; ; away *= 2 {
		marker := newMarker(t)
		cmd, _ := asRole(t, "move a fence", fenced.script, marker, away.String())
		role := cmd.Process.Pid
		late := func() bool { return state(role) == "Z" }       // it ended by itself
		gone := func() bool { return len(marked(marker)) <= 1 } // the process itself has the marker, too
		eventually(t, "the tree is up", func() bool { return len(marked(marker)) > fenced.up+1 || late() })
		for end := time.Now().Add(2 * away); !gone() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		if gone() {
			eventually(t, "the deadline was not moved", late)
		}
		_ = cmd.Process.Signal(syscall.SIGSTOP)
		eventually(t, "the process is stopped", func() bool { return state(role) == "T" || late() })
		again := late()
		if !again {
			eventually(t, "nothing is left", gone)
			if got := state(role); got != "T" {
				t.Errorf("meanwhile the process was not stopped, but %s", got)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if !again {
			return
		}
	}
}

// moveAFence starts a tree and moves its deadline until it is too late once.
func moveAFence() {
	away, err := time.ParseDuration(os.Args[3])
	if err != nil {
		panic(err)
	}
	fence, err := guard.NewFence()
	if err != nil {
		panic(err)
	}
	deadline := extend(fence, away)
	_, err = guard.Start(shell(os.Args[1], os.Args[2]), fence, nil)
	if err != nil && !errors.Is(err, guard.ErrFenced) {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the test is gone
		os.Exit(0)
	}()
	for time.Now().Before(deadline) {
		next := extend(fence, away)
		if time.Now().After(deadline) {
			break
		}
		deadline = next
		time.Sleep(away / 50)
	}
}
