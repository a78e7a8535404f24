package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func values(all []sample, of func(sample) float64) []float64 {
	v := make([]float64, len(all))
	for i, s := range all {
		v[i] = of(s)
	}
	return v
}

func middle(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func median(all []sample, of func(sample) float64) float64 { return middle(values(all, of)) }

func spread(all []sample, of func(sample) float64) string {
	v := values(all, of)
	return fmt.Sprintf("%.0f (%.0f–%.0f)", middle(v), slices.Min(v), slices.Max(v))
}

// ratio is the median of the ratios round by round.
func ratio(a, b []sample, of func(sample) float64) float64 {
	v := make([]float64, min(len(a), len(b)))
	for i := range v {
		v[i] = of(a[i]) / of(b[i])
	}
	return middle(v)
}

// A usage is what a process uses at one moment, as Linux counts it; elsewhere
// it is zero.
type usage struct {
	rss, peak    float64 // MB
	threads, fds int
}

func (p *process) usage() usage {
	dir := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	var u usage
	// The second field may hold spaces; behind its ")" come the others.
	stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
	if _, rest, ok := strings.Cut(string(stat), ") "); ok {
		fields := strings.Fields(rest)
		u.threads, _ = strconv.Atoi(fields[17])
	}
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		for name, into := range map[string]*float64{"VmRSS:": &u.rss, "VmHWM:": &u.peak} {
			if value, ok := strings.CutPrefix(line, name); ok {
				kb, _ := strconv.Atoi(strings.Fields(value)[0])
				*into = float64(kb) / 1024
			}
		}
	}
	fds, _ := os.ReadDir(filepath.Join(dir, "fd"))
	u.fds = len(fds)
	return u
}
