package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

// A load is the CPU time that was used until a moment.
type load struct {
	at        time.Time
	all, ours time.Duration
}

// loadNow counts as ours this process, p and all that p started.
func loadNow(p *process) load {
	l := load{at: time.Now(), ours: procs.CPU(os.Getpid())}
	stat, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 { // the name, idle, iowait; guests are part of user
			continue
		}
		ticks, _ := strconv.Atoi(field)
		l.all += time.Duration(ticks) * 10 * time.Millisecond
	}
	children := procs.Children()
	for tree := []int{p.cmd.Process.Pid}; len(tree) > 0; tree = tree[1:] {
		l.ours += procs.CPU(tree[0])
		tree = append(tree, children[tree[0]]...)
	}
	return l
}

// foreignSince returns the share of the machine that others used since before.
func (l load) foreignSince(before load) float64 {
	all := (l.all - before.all) - (l.ours - before.ours)
	return max(0, all.Seconds()/l.at.Sub(before.at).Seconds()/float64(runtime.NumCPU()))
}
