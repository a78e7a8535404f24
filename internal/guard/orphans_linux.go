package guard

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dynmcp/dynmcp/internal/guard/child"
)

// guards are the guards that this process has started and not yet waited for. This process
// is their subreaper: processes that a killed guard leaves become its children, next to
// the guards and to everything else it started.
var guards struct {
	// Held while a guard is started, as syscall.ForkLock is during a fork, and
	// while orphans are killed: no running guard is missing from pids then, and
	// no pid is signalled after another goroutine has reaped it.
	sync.Mutex
	pids    map[int]bool
	session int   // of this process
	since   int64 // when this process became a subreaper, in clock ticks
}

// startGuard starts a guard, as a child that is not taken for an orphan.
func startGuard(args []string, attr *os.ProcAttr) (*os.Process, error) {
	guards.Lock()
	defer guards.Unlock()
	if guards.pids == nil {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, err
		}
		session, err := unix.Getsid(0)
		if err != nil {
			return nil, err
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			return nil, err
		}
		const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
		guards.session, guards.since = session, now.Nano()/int64(tick)
		guards.pids = map[int]bool{}
	}
	// Not os.Executable: the file may have been replaced since we started.
	p, err := os.StartProcess("/proc/self/exe", args, attr)
	if err != nil {
		return nil, err
	}
	guards.pids[p.Pid] = true
	return p, nil
}

// waitGuard waits until a guard has ended, and reports whether it left nothing.
func waitGuard(p *os.Process) bool {
	state, err := p.Wait()
	guards.Lock()
	defer guards.Unlock()
	delete(guards.pids, p.Pid)
	return err == nil && state.Success()
}

// killOrphans returns when no orphan is left, or when none has ended for a second: those
// hang in the kernel. It gives up on a tree that keeps forking after five seconds.
func killOrphans() {
	began := time.Now()
	progress, pause := began, time.Millisecond
	for {
		left, reaped := killOrphansOnce()
		switch now := time.Now(); {
		case reaped:
			progress, pause = now, time.Millisecond
		case !left, now.Sub(progress) > time.Second:
			return
		}
		if time.Since(began) > 5*time.Second {
			return
		}
		time.Sleep(pause)
		pause = min(2*pause, 50*time.Millisecond)
	}
}

// killOrphansOnce kills the orphans and reaps those that have ended, whose children thereby
// become ours. Orphans of different trees cannot be told apart, which is harmless: no orphan
// has a guard.
//
// A child is an orphan unless it is a guard, is in our session, which nothing that a guard
// started can enter, or existed before the first guard.
func killOrphansOnce() (left, reaped bool) {
	guards.Lock()
	defer guards.Unlock()
	all, err := child.Children()
	if err != nil {
		return true, false
	}
	for _, p := range all {
		if guards.pids[p.Pid] || p.Session == guards.session || p.Started < guards.since {
			continue
		}
		// Only we reap orphans, and only here: until then their pids stay theirs.
		switch pid, err := syscall.Wait4(p.Pid, nil, syscall.WNOHANG, nil); {
		case err != nil:
			// Not a child of ours: /proc shows another PID namespace.
		case pid == p.Pid:
			reaped = true
		default:
			// The group too, since a fork cannot escape that signal.
			if group, err := syscall.Getpgid(p.Pid); err == nil && group > 1 {
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
			// Processes of another user are not waited for.
			left = syscall.Kill(p.Pid, syscall.SIGKILL) == nil || left
		}
	}
	return left, reaped
}
