// Command bench measures dynmcp against a direct connection and against two
// yardsticks, in one run and in turn, so that a machine whose speed drifts
// drifts for all alike:
//
//	direct    the driver talks to the upstream itself
//	pump      a process between them that only moves bytes: the floor
//	dynmcp    dynmcp between them
//	sdkpair   an SDK client behind an SDK server: the usual proxy
//
// Usage, from the root of the module:
//
//	go run ./bench            everything, about six minutes: calls, starts, allocations, a long run
//	go run ./bench -rounds 3  quicker
//	go run ./bench -long 2m   a long run only: RSS over time, goroutines at its end
//
// Figures are medians over the rounds with their least and greatest; a ratio is
// the median of the ratios of each round.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 7, "measurements of each figure")
	long := flag.Duration("long", 0, "only run calls through dynmcp for so `long` and print its memory; then compare its goroutines with those of a fresh one (where everything is measured: 30s)")
	flag.Parse()
	dir, err := os.MkdirTemp("", "dynmcp-bench")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	bin, err := build(dir)
	if err != nil {
		log.Fatal(err)
	}
	if *long > 0 {
		err = longRun(bin, *long)
	} else {
		err = everything(bin, *rounds)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func everything(bin binaries, rounds int) error {
	for _, s := range scenarios {
		if err := measure(bin, s, rounds); err != nil {
			return err
		}
	}
	if err := starts(bin, rounds); err != nil {
		return err
	}
	if err := allocations(); err != nil {
		return err
	}
	fmt.Printf("\nlong run, 1 KB both ways, 64 in flight\n")
	return longRun(bin, usualLong)
}

// usualLong is how long calls are kept going where everything is measured.
const usualLong = 30 * time.Second

// allocations has Go's own benchmark count them. They are those of the process
// that is dynmcp, of which no other process can see them.
func allocations() error {
	fmt.Printf("\nallocations of a forwarded call\n")
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkForward$", "-benchtime", "300ms", "./bench")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// binaries are the paths of what is measured.
type binaries struct{ dynmcp, upstream, pump, sdkpair, dir string }

func build(dir string) (binaries, error) {
	b := binaries{dir: dir}
	for pkg, path := range map[string]*string{
		"./cmd/dynmcp": &b.dynmcp, "./bench/upstream": &b.upstream, "./bench/pump": &b.pump, "./bench/sdkpair": &b.sdkpair,
	} {
		*path = filepath.Join(dir, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-o", *path, pkg)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return b, fmt.Errorf("go build %s: %w", pkg, err)
		}
	}
	return b, nil
}

// variants are the ways from the driver to the upstream, in the order in which
// they are measured and shown.
func (b binaries) variants() []variant {
	return []variant{
		{"direct", []string{b.upstream}, "echo"},
		{"pump", []string{b.pump, b.upstream}, "upstream/echo"},
		{"dynmcp", []string{b.dynmcp, "--log-level", "error", "--", b.upstream}, "echo"},
		{"sdkpair", []string{b.sdkpair, b.upstream}, "echo"},
	}
}

type variant struct {
	name string
	argv []string
	tool string
}

// A scenario is a size of what is sent both ways, and how many calls wait at
// once.
type scenario struct {
	name     string
	size     int
	inFlight int
	calls    int
}

var scenarios = []scenario{
	{"100 B", 100, 1, 4000},
	{"10 KB", 10 << 10, 1, 2000},
	{"1 MB", 1 << 20, 1, 60},
	{"100 B", 100, 64, 40000},
	{"10 KB", 10 << 10, 64, 8000},
	{"1 MB", 1 << 20, 64, 128},
}

// measure runs one scenario over all variants, round by round.
func measure(bin binaries, s scenario, rounds int) error {
	fmt.Printf("\n%s both ways, %d in flight, %d calls a round\n", s.name, s.inFlight, s.calls)
	results := map[string][]sample{}
	for range rounds {
		for _, v := range bin.variants() {
			sample, err := run(v, s)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			results[v.name] = append(results[v.name], sample)
		}
	}
	fmt.Printf("  %-8s %28s %28s %12s %12s %14s\n", "", "p50 µs (least–greatest)", "calls/s (least–greatest)", "p50/pump", "rate/pump", "CPU µs/call")
	for _, v := range bin.variants() {
		got, floor := results[v.name], results["pump"]
		fmt.Printf("  %-8s %28s %28s %12.2f %12.2f %14.1f\n", v.name,
			spread(got, func(s sample) float64 { return s.p50.Seconds() * 1e6 }),
			spread(got, func(s sample) float64 { return s.rate }),
			ratio(got, floor, func(s sample) float64 { return s.p50.Seconds() }),
			ratio(got, floor, func(s sample) float64 { return s.rate }),
			median(got, func(s sample) float64 { return s.cpu.Seconds() * 1e6 }))
	}
	return nil
}
