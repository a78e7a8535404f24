package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/stacks"
)

// A standing counts the resources of an idle dynmcp.
type standing struct{ descriptors, children, processes int }

func (h *host) standing() standing {
	return standing{h.descriptors(), len(childrenOf(h.Cmd.Process.Pid)), h.processes()}
}

// rest brings dynmcp into a state in which two can be compared: all servers run, there are
// no calls, and nothing of earlier ones is left. It makes calls with succeed and then calls
// done.
func (h *host) rest(servers []entry, succeed func(id, tool, arguments string) error, done func() error) (standing, error) {
	for _, e := range servers {
		if err := succeed(e.name+" loads", "load_mcp", load(e.name)); err != nil {
			return standing{}, err
		}
	}
	for _, e := range servers {
		if err := succeed(e.name+" answers", "use_tool", use(e.name+"/pid", `{}`)); err != nil {
			return standing{}, err
		}
	}
	if err := done(); err != nil {
		return standing{}, err
	}
	return h.settle(), nil
}

// restOnPipes calls rest with requests on the pipes. Other answers go to other.
func (h *host) restOnPipes(servers []entry, other func(answer) error) (standing, error) {
	return h.rest(servers, func(id, tool, arguments string) error { return h.succeed(id, tool, arguments, other) }, func() error { return nil })
}

// succeed makes a call that must not fail.
func (h *host) succeed(id, tool, arguments string, other func(answer) error) error {
	h.ask(strconv.Quote(id), tool, arguments)
	a, err := h.Await(id, other)
	if err != nil {
		return err
	}
	return a.Good(id)
}

// settle waits until the resources of dynmcp have not changed for a second. It polls,
// because no event tells when they are released.
func (h *host) settle() standing {
	last, since := h.standing(), time.Now()
	for end := since.Add(20 * time.Second); time.Since(since) < time.Second && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if now := h.standing(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

// compare fails the soak unless a dynmcp that worked has the resources of a fresh one.
func (s *soak) compare(step string, before, after standing, fresh, left stacks.Count) {
	fmt.Printf("%s: at rest, fresh and at the end: %d and %d goroutines, %d and %d descriptors, %d and %d children, %d and %d processes\n",
		step, fresh.Total(), left.Total(), before.descriptors, after.descriptors, before.children, after.children, before.processes, after.processes)
	s.Must("descriptors", after.descriptors, before.descriptors)
	s.Must("children", after.children, before.children)
	s.Must("processes", after.processes, before.processes)
	s.Must("goroutines", left.Total(), fresh.Total())
	if fresh.Total() == 0 {
		s.Fail("SIGQUIT did not show any goroutines")
	}
	if left.Total() != fresh.Total() {
		fmt.Print(stacks.Difference(fresh, left))
	}
}

// remaining waits for the descendants of a dynmcp that ended, and counts those that stay.
func (h *host) remaining() int {
	within(patience, func() bool { return h.processes() == 0 })
	return h.processes()
}

// processes counts the running processes with the marker in their environment, or its
// value in an argument.
func (h *host) processes() int { return len(procs.Marked(h.marker)) }

// status returns a number from /proc/PID/status.
func (h *host) status(key string) int { return procs.Number(h.Cmd.Process.Pid, "status", key) }

func (h *host) descriptors() int { return procs.Descriptors(h.Cmd.Process.Pid) }

// childrenOf returns the children of a process, with zombies.
func childrenOf(pid int) []int { return procs.Children()[pid] }

// isGuard reports whether a running process is a guard, which is between dynmcp and a
// server.
func isGuard(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := strings.Cut(string(line), "\x00")
	return name == "dynmcp-guard" || name == "dynmcp-guard-fenced" // the guard of a replica
}

// The memory of a run is judged from flatFrom calls on. It may grow during the first half
// of these.
const flatFrom = 200_000

// judgeMemory compares the memory after the first tenth, or after the first 100,000 calls
// of a shorter run, with that at the end. It may grow by 8 MB or a tenth. Both are medians
// of ten samples, because one sample mostly depends on the garbage collector.
func (s *soak) judgeMemory(step string, n int, memory []int) {
	if len(memory) < 100 {
		return
	}
	first := 10
	if n >= flatFrom {
		first = max(10, 100*100_000/n)
	}
	early, late := middle(memory[first:first+10]), middle(memory[len(memory)-10:])
	fmt.Printf("%s: RSS %d MB after the first %d%%, %d MB at the end\n", step, early, first, late)
	if n >= flatFrom && late-early >= max(8, early/10) {
		s.Fail("RSS grew by %d MB", late-early)
	}
}

func middle(v []int) int { return slices.Sorted(slices.Values(v))[len(v)/2] }
