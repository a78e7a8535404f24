package main

import (
	"fmt"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/stacks"
)

// longRun keeps calls going and prints what dynmcp's memory does. It is an error
// if there are other goroutines at the end than in a dynmcp that has just begun.
func longRun(bin binaries, d time.Duration) error {
	fresh, err := goroutines(bin, 0, false)
	if err != nil {
		return err
	}
	fmt.Printf("%10s %12s %10s %10s %8s\n", "after", "calls", "RSS MB", "threads", "fds")
	left, err := goroutines(bin, d, true)
	if err != nil {
		return err
	}
	fmt.Printf("goroutines: %d in a fresh dynmcp, %d at the end\n", fresh.Total(), left.Total())
	if fresh.Total() == 0 || fresh.Total() != left.Total() {
		return fmt.Errorf("these goroutines differ:\n%s", stacks.Difference(fresh, left))
	}
	return nil
}

// goroutines makes calls for so long, in at least one round,
// and ends dynmcp when all are answered. It returns what goroutines there were.
func goroutines(bin binaries, d time.Duration, show bool) (stacks.Count, error) {
	v := bin.variants()[2]
	p, err := startProcess(v.argv)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	s := scenario{size: 1 << 10, content: text, inFlight: 64, calls: 20000}
	calls := newCalls(v.tool, "", s)
	total, shown := 0, time.Duration(0)
	for began := time.Now(); total == 0 || time.Since(began) < d; {
		if _, err := p.drive(calls, s); err != nil {
			return nil, err
		}
		total += s.calls
		// A run of many rounds is shown in some thirty lines.
		if u := p.usage(); show && time.Since(began) >= shown {
			shown += d / 30
			fmt.Printf("%10s %12d %10.1f %10d %8d\n", time.Since(began).Round(time.Second), total, u.rss, u.threads, u.fds)
		}
	}
	return p.quit()
}

// quit ends a process by SIGQUIT, a moment after its last answer: nothing says
// when the goroutines that had a part in that are gone.
func (p *process) quit() (stacks.Count, error) {
	time.Sleep(time.Second)
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return nil, err
	}
	_ = p.cmd.Wait() // status 2, as it was to be
	text := p.stderr.String()
	p.stderr.Reset() // it is no complaint
	return stacks.Parse(text), nil
}
