package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// hostileTrees are sh scripts that start processes beside a server. $0 is the marker,
// which sleep takes as its time.
var hostileTrees = []struct {
	script string
	up     int // least number of processes once all have started
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

// treesAtOnce is the number of hostile trees in a trial.
const treesAtOnce = 4

var (
	guardSignals = []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGABRT, sigstop}
	ends         = []syscall.Signal{0, syscall.SIGTERM, syscall.SIGKILL} // for dynmcp; 0 closes its stdin
)

// guards kills or stops the guards of servers with hostile trees, and then ends dynmcp,
// n times in each way.
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

// guardTrial sends a random signal to each guard of a dynmcp, each at a random time, and
// then ends dynmcp. Before SIGKILL it waits until dynmcp has ended the processes of dead
// guards, since nothing else would. The time is measured from the first signal.
func (s *soak) guardTrial(end syscall.Signal) (t trial, err error) {
	entries := []entry{{name: "forks", args: []string{"-fault", "double-fork,ignore-eof,ignore-term"}}}
	up := 1 + 1 + 4 // dynmcp, the fake server and its four processes
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
	defer h.End()
	if !within(time.Minute, func() bool { return h.processes() >= up }) {
		return t, fmt.Errorf("the servers did not start: %d of %d processes", h.processes(), up)
	}

	began := time.Now()
	var strikes sync.WaitGroup
	for _, pid := range childrenOf(h.Cmd.Process.Pid) {
		if !isGuard(pid) {
			continue
		}
		i := rand.IntN(len(guardSignals))
		t.struck[i]++
		strikes.Go(func() {
			pause(200 * time.Millisecond)
			if isGuard(pid) { // dynmcp may be ending already
				signal(pid, guardSignals[i])
			}
		})
	}
	if end == syscall.SIGKILL {
		strikes.Wait()
		clean := 0 // must be 2, since /proc is not read all at once
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
		_ = h.Cmd.Process.Signal(end)
	}
	if err := h.Stop(); err != nil && end == 0 {
		return t, err
	}
	strikes.Wait()
	t.left = h.remaining()
	t.took = time.Since(began)
	// Some trees keep forking, so end them now.
	within(10*time.Second, func() bool {
		left := procs.Marked(h.marker)
		for _, pid := range left {
			signal(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
	return t, nil
}

// abandoned counts the children of dynmcp that are not guards. They become its children
// when their guard dies.
func (h *host) abandoned() int {
	n := 0
	for _, pid := range childrenOf(h.Cmd.Process.Pid) {
		if !isGuard(pid) {
			n++
		}
	}
	return n
}

// pause waits for a random time below most.
func pause(most time.Duration) { time.Sleep(rand.N(most)) }

// within waits until holds returns true, and reports whether it did before the limit.
func within(limit time.Duration, holds func() bool) bool {
	for end := time.Now().Add(limit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
