package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf returns the CPU time that all threads of a process have used.
func cpuOf(pid int) time.Duration {
	var ts unix.Timespec
	const schedClock = 2 // of a process, CPUCLOCK_SCHED: what clock_getcpuclockid returns
	if unix.ClockGettime(int32(^pid)<<3|schedClock, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// A load is the CPU time that was used until a moment.
type load struct {
	at        time.Time
	all, ours time.Duration
}

// loadNow counts as ours this process, p and all that p started.
func loadNow(p *process) load {
	l := load{at: time.Now(), ours: cpuOf(os.Getpid())}
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the name, idle, iowait; guests are part of user
			continue
		}
		ticks, _ := strconv.Atoi(field)
		l.all += time.Duration(ticks) * 10 * time.Millisecond
	}
	parents := map[int][]int{}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		var pid, parent int
		stat, _ := os.ReadFile(path)
		before, behind, ok := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscan(before, &pid); err != nil || !ok {
			continue // it has ended
		}
		var state string
		if _, err := fmt.Sscan(behind, &state, &parent); err == nil {
			parents[parent] = append(parents[parent], pid)
		}
	}
	for tree := []int{p.cmd.Process.Pid}; len(tree) > 0; tree = tree[1:] {
		l.ours += cpuOf(tree[0])
		tree = append(tree, parents[tree[0]]...)
	}
	return l
}

// foreignSince returns the share of the machine that others used since before.
func (l load) foreignSince(before load) float64 {
	all := (l.all - before.all) - (l.ours - before.ours)
	return max(0, all.Seconds()/l.at.Sub(before.at).Seconds()/float64(runtime.NumCPU()))
}

// children weighs the processes that a process has started and that are still there.
func (p *process) children() (w weight) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // it may have ended
		_, fields, _ := strings.Cut(string(stat), ") ")
		if parts := strings.Fields(fields); len(parts) > 1 && parts[1] == strconv.Itoa(p.cmd.Process.Pid) {
			w.add(filepath.Dir(path))
		}
	}
	return w
}
