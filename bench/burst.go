package main

import (
	"fmt"
	"time"
)

// bursts sends far more than usual at once, waiting for nothing, and prints what
// memory dynmcp takes, and keeps when all is answered.
func bursts(bin binaries, rounds int) error {
	s := scenario{name: "1.3 MB", size: 1300 << 10, content: text, inFlight: 300, calls: 300}
	fmt.Printf("\n%d calls of %s sent at once: RSS in MB, at most and so long after the last answer\n", s.calls, s.name)
	fmt.Printf("  %10s %10s %10s %10s %10s\n", "peak", "0 s", "1 s", "5 s", "10 s")
	for range min(rounds, 3) {
		if err := burst(bin.variants()[2], s); err != nil {
			return err
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
	if err := p.handshake(); err != nil {
		return err
	}
	if _, err := p.drive(newCalls(v.tool, "", s), s); err != nil {
		return err
	}
	began := time.Now()
	now := p.usage()
	fmt.Printf("  %10.0f %10.0f", now.peak, now.rss)
	for _, after := range []time.Duration{time.Second, 5 * time.Second, 10 * time.Second} {
		time.Sleep(time.Until(began.Add(after)))
		fmt.Printf(" %10.0f", p.usage().rss)
	}
	fmt.Println()
	return nil
}
