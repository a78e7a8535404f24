package box_test

import (
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/dynmcp/dynmcp/internal/guard"
	"github.com/dynmcp/dynmcp/modules/sandbox/box"
)

// BenchmarkStart starts a command without a sandbox and within one, in turn. It reports the
// medians of the time of a start, and of the time and the processor time that a sandbox adds.
func BenchmarkStart(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	server := box.Server{Name: "bench", Program: path, Env: os.Environ()}
	start := func(boxed bool) (took, used time.Duration) {
		before, began := processorTime(b), time.Now()
		var restrictions *guard.Restrictions
		var made *box.Sandbox
		if boxed {
			made, err = box.New(server, slog.New(slog.DiscardHandler), func(string) {})
			if err != nil {
				b.Fatal(err)
			}
			restrictions = made.Restrictions()
		}
		tree, err := guard.Start(exec.Command(path), nil, restrictions)
		if err != nil {
			b.Fatal(err)
		}
		took = time.Since(began)
		_ = tree.Wait()
		tree.Reap()
		if err := made.Close(); err != nil {
			b.Fatal(err)
		}
		return took, processorTime(b) - before
	}
	var without, within, more, moreUsed []time.Duration
	for b.Loop() {
		took, used := start(false)
		tookBoxed, usedBoxed := start(true)
		without, within = append(without, took), append(within, tookBoxed)
		more, moreUsed = append(more, tookBoxed-took), append(moreUsed, usedBoxed-used)
	}
	for unit, all := range map[string][]time.Duration{"µs/without": without, "µs/within": within, "µs/added": more, "µs-cpu/added": moreUsed} {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), unit)
	}
}

// processorTime returns the processor time of this process and of the children that it has reaped.
func processorTime(b *testing.B) (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return sum
}
