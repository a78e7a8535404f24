package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dynmcp/bench/internal/stacks"
)

// A standing is what a dynmcp holds at a quiet moment.
type standing struct{ descriptors, children, processes int }

func (h *host) standing() standing {
	return standing{h.descriptors(), h.children(), processes(h.marker)}
}

// noOther is for await where no other answer can come.
func noOther(a answer) error { return fmt.Errorf("an answer to nothing: %.200s", a.line) }

// rest brings dynmcp to where two of them can be compared: every server is
// connected, nothing is in flight, and what ended is gone. What it takes is asked by
// succeed; done is called behind that.
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

// restOnPipes is rest, asked by the host. What else is answered meanwhile goes to other.
func (h *host) restOnPipes(servers []entry, other func(answer) error) (standing, error) {
	return h.rest(servers, func(id, tool, arguments string) error { return h.succeed(id, tool, arguments, other) }, func() error { return nil })
}

// succeed asks what must not fail.
func (h *host) succeed(id, tool, arguments string, other func(answer) error) error {
	h.ask(strconv.Quote(id), tool, arguments)
	a, err := h.await(id, other)
	if err != nil {
		return err
	}
	return a.good(id)
}

// settle waits until what dynmcp holds has not changed for a second. There is
// no event for the end of what it lets go.
func (h *host) settle() standing {
	last, since := h.standing(), time.Now()
	for end := since.Add(20 * time.Second); time.Since(since) < time.Second && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if now := h.standing(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

// compare fails the soak unless a dynmcp that worked holds what a fresh one does.
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

// remaining waits for what is below a dynmcp that ended, and counts what stays.
func (h *host) remaining() int {
	for end := time.Now().Add(patience); processes(h.marker) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return processes(h.marker)
}

// status returns a number of /proc/PID/status.
func (h *host) status(key string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), key)
	var number int
	_, _ = fmt.Sscan(rest, &number) // 0 where there is none
	return number
}

func (h *host) descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.cmd.Process.Pid))
	return len(entries)
}

// children counts the processes whose parent dynmcp is, those included that
// ended and were not waited for.
func (h *host) children() int { return len(childrenOf(h.cmd.Process.Pid)) }

func childrenOf(pid int) (children []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		if child, err := strconv.Atoi(filepath.Base(path)); err == nil && parentOf(child) == pid {
			children = append(children, child)
		}
	}
	return children
}

// parentOf is 0 for a process that is gone.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The second field may hold spaces; behind its ")" come state and parent.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// isGuard reports whether a living process is what dynmcp puts between itself
// and a server.
func isGuard(pid int) bool {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.HasPrefix(string(line), "dynmcp-guard\x00")
}

// flatFrom is how many calls a run must have for its memory to be judged, twice
// as many as it may take to come to rest.
const flatFrom = 200_000

// judgeMemory compares the memory after the first tenth (the first 100,000
// calls of a shorter run) with that at the end: medians of ten samples, because
// one sample says more of the garbage collector than of us. It may grow by
// 8 MB or a tenth.
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
