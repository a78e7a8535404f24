package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// hostileTrees are what servers leave beside themselves, as scripts for sh. $0 is
// the marker, which sleep takes for a time.
var hostileTrees = []struct {
	script string
	up     int // processes of it, at least, when it is all there
}{
	{`sleep $0 &`, 1},
	{`(sleep $0 &)`, 1},
	{`setsid sh -c 'sleep $0 &' $0`, 1},
	{`env -i "$(command -v setsid)" -f "$(command -v sleep)" $0`, 1},
	{`for i in 1 2 3 4 5; do setsid -f sleep $0; done`, 5},
	{`(trap "" TERM HUP INT; sleep $0 & wait) &`, 2},
	{`nohup sleep $0 >/dev/null 2>&1 &`, 1},
	{`timeout 600 sleep $0 &`, 2},
	{`setpriv --pdeathsig clear sleep $0 &`, 1},
	{`sh -c 'exec <&- >&- 2>&-; sleep $0 & wait' $0 &`, 2},
	{`sh -c 'kill -STOP $$; sleep $0' $0 &`, 1},
	{`setsid sh -c 'trap "" HUP; kill -STOP $$; sleep $0' $0 &`, 1},
	{`nest='n=$1; [ $n = 0 ] || setsid -f sh -c "$2" $0 $((n-1)) "$2"; sleep $0'; setsid -f sh -c "$nest" $0 3 "$nest"`, 8},
	{`(i=0; while [ $((i+=1)) -lt 500 ]; do setsid -f sleep $0; sleep 0.1; done) &`, 2},
	{`hop='sleep 0.05; [ $1 = 0 ] || setsid -f sh -c "$2" $0 $(($1-1)) "$2"'; setsid -f sh -c "$hop" $0 1000 "$hop"`, 1},
}

// treesAtOnce is how many of them a trial has.
const treesAtOnce = 4

var (
	guardSignals = []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT, sigstop}
	ends         = []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} // of dynmcp; 0 is the end of its stdin
)

// guards kills or stops the guards of servers with hostile trees, and then ends
// dynmcp, so often in each way.
func (s *soak) guards(n, atOnce int) error {
	var total trial
	for _, end := range ends {
		all, took, err := trials(n, atOnce, func() (trial, error) { return s.guardTrial(end) })
		if err != nil {
			return err
		}
		total.add(all)
		fmt.Printf("guards: %d trials of %d servers, ended by %s, %d at a time: %d processes left after %v; from the first guard struck to the last process gone %v (median), %v (worst)\n",
			n, treesAtOnce+1, endName(end), atOnce, all.left, patience, rounded(took[n/2]), rounded(took[n-1]))
		s.Must("processes that have no guard any more and go on", all.abandoned, 0)
		s.Must("processes left", all.left, 0)
	}
	fmt.Printf("guards: %d got SIGKILL, %d SIGSEGV, %d SIGABRT, %d SIGSTOP\n", total.struck[0], total.struck[1], total.struck[2], total.struck[3])
	return nil
}

func endName(sig syscall.Signal) string {
	if sig == 0 {
		return "EOF"
	}
	return sig.String()
}

// guardTrial strikes every guard of a dynmcp, each with a signal and at a moment
// of its own, and ends dynmcp at another. Before SIGKILL it waits for what dead
// guards left: there is nobody else to end that. It takes from the first signal on.
func (s *soak) guardTrial(end syscall.Signal) (t trial, err error) {
	entries := []entry{{name: "forks", args: []string{"-fault", "double-fork,ignore-eof,ignore-term"}}}
	up := 1 + 1 + 4 // dynmcp, the fake and its four
	for _, i := range rand.Perm(len(hostileTrees))[:treesAtOnce] {
		tree := hostileTrees[i]
		entries = append(entries, entry{name: fmt.Sprintf("tree-%d", i), fields: map[string]any{
			"command": "sh",
			"args":    []string{"-c", tree.script + "\nexec \"$@\"", "${SOAK}", s.fake, "-max-life", "10m"},
		}})
		up += tree.up + 1
	}
	up += len(entries) // their guards
	h, err := s.start(entries...)
	if err != nil {
		return t, err
	}
	defer h.end()
	if !within(time.Minute, func() bool { return h.processes() >= up }) {
		return t, fmt.Errorf("the servers did not start: %d of %d processes", h.processes(), up)
	}

	began := time.Now()
	var strikes sync.WaitGroup
	for _, pid := range childrenOf(h.cmd.Process.Pid) {
		if !isGuard(pid) {
			continue
		}
		i := rand.IntN(len(guardSignals))
		t.struck[i]++
		strikes.Go(func() {
			pause(200 * time.Millisecond)
			if isGuard(pid) { // dynmcp may be ending by now
				signal(pid, guardSignals[i])
			}
		})
	}
	if end == syscall.SIGKILL {
		strikes.Wait()
		clean := 0 // twice in a row, as /proc is not read at one moment
		within(10*time.Second, func() bool {
			if t.abandoned = h.abandoned(); t.abandoned > 0 {
				clean = 0
			} else {
				clean++
			}
			return clean == 2
		})
	}
	pause(300 * time.Millisecond)
	if end != 0 {
		_ = h.cmd.Process.Signal(end)
	}
	if err := h.stop(); err != nil && end == 0 {
		return t, err
	}
	strikes.Wait()
	t.left = h.remaining()
	t.took = time.Since(began)
	// Some trees go on forking: the machine is not to have them for long.
	within(10*time.Second, func() bool {
		left := procs.Marked(h.marker)
		for _, pid := range left {
			signal(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
	return t, nil
}

// abandoned counts the children of dynmcp that are not guards: dynmcp gets them
// when their guard dies.
func (h *host) abandoned() int {
	n := 0
	for _, pid := range childrenOf(h.cmd.Process.Pid) {
		if !isGuard(pid) {
			n++
		}
	}
	return n
}

// pause waits for up to so long: it is chance that the steps are after.
func pause(most time.Duration) { time.Sleep(rand.N(most)) }

// within waits until something holds, and reports whether it came to that.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
