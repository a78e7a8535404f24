package main

import (
	"fmt"
	"slices"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
)

func values(all []sample, of func(sample) float64) []float64 {
	v := make([]float64, len(all))
	for i, s := range all {
		v[i] = of(s)
	}
	return v
}

// Figures of samples. Times are in µs.
func rate(s sample) float64 { return s.rate }
func p50(s sample) float64  { return s.p50.Seconds() * 1e6 }
func p99(s sample) float64  { return s.p99.Seconds() * 1e6 }
func cpu(s sample) float64  { return s.cpu.Seconds() * 1e6 }
func peak(s sample) float64 { return s.peak }

func foreign(s sample) float64 { return s.foreign }

// milliseconds returns p50 in ms.
func milliseconds(s sample) float64 { return s.p50.Seconds() * 1e3 }

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

func spread(v []float64) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", median(v), slices.Min(v), slices.Max(v))
}

// ratio returns the median of the ratios of each round.
func ratio(a, b []sample, of func(sample) float64) float64 {
	v := make([]float64, min(len(a), len(b)))
	for i := range v {
		v[i] = of(a[i]) / of(b[i])
	}
	return median(v)
}

// A usage is the present resource usage of a process, on Linux; elsewhere it is zero.
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
