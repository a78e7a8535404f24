package main

import (
	"fmt"
	"slices"

	"dynmcp/bench/internal/procs"
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
	pid := p.cmd.Process.Pid
	return usage{
		rss:     float64(procs.Number(pid, "status", "VmRSS:")) / 1024,
		peak:    float64(procs.Number(pid, "status", "VmHWM:")) / 1024,
		threads: procs.Number(pid, "status", "Threads:"),
		fds:     procs.Descriptors(pid),
	}
}
