package guard

import (
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// guards are those that this process has started and not yet waited for. We are
// their subreaper: what a guard leaves when it is killed becomes our child, next
// to the guards and to whatever else our program has started.
var guards struct {
	// Held while a guard is started, as syscall.ForkLock is during a fork, and
	// while orphans are killed: no running guard is missing from pids then, and
	// no pid is signalled after another goroutine has reaped it.
	sync.Mutex
	pids    map[int]bool
	session int   // ours
	since   int64 // when we became subreaper, in clock ticks
}

// startGuard starts a guard, as a child that will not be taken for an orphan.
func startGuard(cmd *exec.Cmd) error {
	guards.Lock()
	defer guards.Unlock()
	if guards.pids == nil {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
		session, err := unix.Getsid(0)
		if err != nil {
			return err
		}
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			return err
		}
		const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Go runs
		guards.session, guards.since = session, now.Nano()/int64(tick)
		guards.pids = map[int]bool{}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	guards.pids[cmd.Process.Pid] = true
	return nil
}

// waitGuard waits until a guard has ended, and reports whether it left nothing.
func waitGuard(cmd *exec.Cmd) bool {
	err := cmd.Wait()
	guards.Lock()
	defer guards.Unlock()
	delete(guards.pids, cmd.Process.Pid)
	return err == nil
}

// killOrphans returns when no orphan is left, or when none has ended for a second:
// those hang in the kernel. A tree that keeps forking is given up after five.
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

// killOrphansOnce kills the orphans and reaps those that have ended, whose
// children thereby become ours. Those of every tree look the same, which does
// no harm: no orphan has a guard.
//
// A child is an orphan unless it is a guard, has our session, which nothing
// that a guard started can enter, or was there before the first guard.
func killOrphansOnce() (left, reaped bool) {
	guards.Lock()
	defer guards.Unlock()
	all, err := children()
	if err != nil {
		return true, false
	}
	for _, p := range all {
		if guards.pids[p.pid] || p.session == guards.session || p.started < guards.since {
			continue
		}
		// Only we reap orphans, and only here: until then their pids stay theirs.
		switch pid, err := syscall.Wait4(p.pid, nil, syscall.WNOHANG, nil); {
		case err != nil:
			// Not a child of ours: /proc shows another PID namespace.
		case pid == p.pid:
			reaped = true
		default:
			// The group too, since a fork cannot escape that signal.
			if group, err := syscall.Getpgid(p.pid); err == nil && group > 1 {
				_ = syscall.Kill(-group, syscall.SIGKILL)
			}
			// What runs as another user is not waited for.
			left = syscall.Kill(p.pid, syscall.SIGKILL) == nil || left
		}
	}
	return left, reaped
}
