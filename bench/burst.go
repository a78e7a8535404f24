package main

import (
	"fmt"
	"time"
)

// bursts sends many calls at once, and prints the memory of dynmcp: the peak, also in proportion to
// the bytes in flight, and after the last answer.
func bursts(bin binaries, rounds int) error {
	fmt.Printf("\ncalls sent at once: RSS in MB, at most, that by the MB in flight, and so long after the last answer\n")
	fmt.Printf("  %-14s %10s %10s %10s %10s %10s %10s\n", "", "peak", "in flight", "0 s", "1 s", "5 s", "10 s")
	for _, s := range []scenario{
		{name: "1 MB", size: 1 << 20, content: text, inFlight: 64, calls: 64},
		{name: "5 MB", size: 5 << 20, content: text, inFlight: 64, calls: 64},
		{name: "1.3 MB", size: 1300 << 10, content: text, inFlight: 300, calls: 300},
	} {
		for range min(rounds, 3) {
			if err := burst(bin.variants()[2], s); err != nil {
				return err
			}
		}
	}
	return nil
}

func burst(v variant, s scenario) error {
	p, err := startProcess(v.argv)
	if err != nil {
		return err
	}
	defer p.stop()
	if _, err := p.drive(newCalls(v.tool, "", s), s); err != nil {
		return err
	}
	began := time.Now()
	now := p.usage()
	inFlight := float64(s.calls) * float64(s.size) / (1 << 20)
	fmt.Printf("  %3d x %-8s %10.0f %9.1fx %10.0f", s.calls, s.name, now.peak, now.peak/inFlight, now.rss)
	for _, after := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} {
		time.Sleep(time.Until(began.Add(after)))
		fmt.Printf(" %10.0f", p.usage().rss)
	}
	fmt.Println()
	return nil
}
