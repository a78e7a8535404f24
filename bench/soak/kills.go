package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience is the time in which the descendants of a killed dynmcp must end.
const patience = 3 * time.Second

// kills ends dynmcp n times with SIGKILL and n times with SIGTERM.
func (s *soak) kills(n, atOnce int) error {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		all, took, err := trials(n, atOnce, func() (trial, error) { return s.kill(sig) })
		if err != nil {
			return err
		}
		fmt.Printf("kills: %d × %v, %d at a time: %d processes left after %v; all gone after %v (median), %v (worst)\n",
			n, sig, atOnce, all.left, patience, rounded(took[n/2]), rounded(took[n-1]))
		s.Must("processes left", all.left, 0)
	}
	return nil
}

// A trial has the results of ending one dynmcp.
type trial struct {
	struck    [4]int        // guards that got each signal
	abandoned int           // processes without a guard while dynmcp runs
	left      int           // processes after the end of dynmcp
	took      time.Duration // until the last process ended
}

func (t *trial) add(o trial) {
	t.abandoned, t.left = t.abandoned+o.abandoned, t.left+o.left
	for i := range t.struck {
		t.struck[i] += o.struck[i]
	}
}

// trials makes n trials, atOnce at a time. It returns their sum and their times in
// ascending order.
func trials(n, atOnce int, one func() (trial, error)) (all trial, took []time.Duration, err error) {
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(atOnce)
	for range n {
		group.Go(func() error {
			t, err := one()
			mu.Lock()
			defer mu.Unlock()
			all.add(t)
			took = append(took, t.took)
			return err
		})
	}
	err = group.Wait()
	slices.Sort(took)
	return all, took, err
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// kill makes one trial. The time is measured from the end of dynmcp.
func (s *soak) kill(sig syscall.Signal) (t trial, err error) {
	ledger := filepath.Join(s.dir, fmt.Sprintf("ledger-%d", time.Now().UnixNano()))
	// Processes that are left nevertheless end after ten minutes.
	args := []string{"-max-life", "10m", "-ledger", ledger, "-fault"}
	h, err := s.start(
		entry{name: "forks", args: append(slices.Clone(args), "double-fork")},
		entry{name: "deaf", args: append(slices.Clone(args), "double-fork,ignore-eof,ignore-term")},
	)
	if err != nil {
		return t, err
	}
	defer h.End()
	if !within(time.Minute, func() bool { return count(ledger, "child ") >= 10 }) {
		return t, fmt.Errorf("the servers did not start: %d of 10 children", count(ledger, "child "))
	}
	if err := h.Cmd.Process.Signal(sig); err != nil {
		return t, err
	}
	_ = h.Stop() // reports the signal
	ended := time.Now()
	t.left = h.remaining()
	t.took = time.Since(ended)
	return t, nil
}

// count counts the lines of a ledger that begin with an event.
func count(ledger, event string) int {
	text, _ := os.ReadFile(ledger) // there is no file before the first event
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, event) {
			n++
		}
	}
	return n
}
