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

	"dynmcp/bench/internal/procs"
)

// patience is how long what is below a dynmcp that was killed may take to go.
const patience = 3 * time.Second

// kills kills dynmcp so often with SIGKILL, and so often with SIGTERM.
func (s *soak) kills(n, atOnce int) error {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		var mu sync.Mutex
		var left int
		var took []time.Duration
		var trials errgroup.Group
		trials.SetLimit(atOnce)
		for range n {
			trials.Go(func() error {
				orphans, d, err := s.kill(sig)
				mu.Lock()
				defer mu.Unlock()
				left, took = left+orphans, append(took, d)
				return err
			})
		}
		if err := trials.Wait(); err != nil {
			return err
		}
		slices.Sort(took)
		fmt.Printf("kills: %d × %v, %d at a time: %d processes left after %v; all gone after %v (median), %v (worst)\n",
			n, sig, atOnce, left, patience, rounded(took[n/2]), rounded(took[n-1]))
		s.Must("processes left", left, 0)
	}
	return nil
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// kill is one trial. It returns how many processes were left after patience,
// and how long after the end of dynmcp the last was gone.
func (s *soak) kill(sig syscall.Signal) (left int, took time.Duration, err error) {
	ledger := filepath.Join(s.dir, fmt.Sprintf("ledger-%d", time.Now().UnixNano()))
	// What is left for all that must not stay for long.
	args := []string{"-max-life", "10m", "-ledger", ledger, "-fault"}
	h, err := s.start(
		entry{name: "forks", args: append(slices.Clone(args), "double-fork")},
		entry{name: "deaf", args: append(slices.Clone(args), "double-fork,ignore-eof,ignore-term")},
	)
	if err != nil {
		return 0, 0, err
	}
	defer h.end()
	for end := time.Now().Add(time.Minute); count(ledger, "child ") < 10; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return 0, 0, fmt.Errorf("the servers did not start: %d of 10 children", count(ledger, "child "))
		}
	}
	if err := h.cmd.Process.Signal(sig); err != nil {
		return 0, 0, err
	}
	_ = h.stop() // killed, as it was to be
	ended := time.Now()
	for {
		left = processes(h.marker)
		if took = time.Since(ended); left == 0 || took > patience {
			return left, took, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// count counts the lines of a ledger that begin with an event.
func count(ledger, event string) int {
	text, _ := os.ReadFile(ledger) // none is none yet
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, event) {
			n++
		}
	}
	return n
}

// processes counts the living processes that carry an entry in their
// environment, or its value in an argument.
func processes(marker string) int { return len(procs.Marked(marker)) }
