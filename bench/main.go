// Command bench measures dynmcp against a direct connection and against two
// yardsticks, in one run and in turn, so that a machine whose speed drifts
// drifts for all alike:
//
//	direct    the driver talks to the upstream itself
//	pump      a process between them that only moves bytes: the floor
//	dynmcp    dynmcp between them
//	sdkpair   an SDK client behind an SDK server: the usual proxy
//
// For upstreams over HTTP the pump is one over net/http, of one POST a line; for hosts
// over HTTP ("gateway to …") one that posts bodies on, or writes them to a pipe, and
// dynmcp is measured with hosts of both eras, the newer as 2026-07.
//
// Usage, from the root of the module:
//
//	go run -C bench .               everything, about ten minutes: calls, bursts, reloads, starts, allocations, a long run
//	go run -C bench . -rounds 3     quicker
//	go run -C bench . -only HTTP    calls whose scenario's name has that in it, and nothing else
//	go run -C bench . -only starts  or -only reloads, or -only bursts
//	go run -C bench . -only short   three scenarios of calls, in half a minute
//	go run -C bench . -table        what ARCHITECTURE.md says of speed, as it stands there; five minutes
//	go run -C bench . -only slow    hosts over HTTP beside one that reads nothing
//	go run -C bench . -only sharing five hosts that share a run (dynmcp connect), and five that do not
//	go run -C bench . -only capacity what one replica carries: the constants of docs/scale.md
//	go run -C bench . -only stored  searches of a stored catalogue, of real tools if the corpus of bench/tokens is there
//	go run -C bench . -also old=/tmp/dynmcp  another dynmcp beside this one
//	go run -C bench . -against v0.3.0  the dynmcp of a commit beside this one, and at the end what became slower
//	go run -C bench . -selftest     a build with a slow call beside this one: it must be found
//	go run -C bench . -long 2m      a long run only: RSS over time, goroutines at its end
//	go run -C bench ./tokens CORPUS what models read, in tokens: a program of its own
//
// Figures are medians over the rounds with their least and greatest; a ratio is
// the median of the ratios of each round. How much of the machine others used in a
// round is printed as well: from a tenth on ratios of rates fall for all.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/programs"
)

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "only calls of scenarios whose name, as it is printed, holds this `text`; or \"bursts\", \"reloads\", \"starts\", \"stored\", \"slow\", \"sharing\", \"recording\", \"short\" or \"capacity\"")
	var also []variant
	flag.Func("also", "another dynmcp to measure, as `name=path`", func(value string) error {
		name, path, ok := strings.Cut(value, "=")
		if !ok {
			return errors.New("name=path is wanted")
		}
		also = append(also, variant{name: name, argv: []string{path}})
		return nil
	})
	against := flag.String("against", "", "a `commit` to measure beside this one; what became slower since is said at the end")
	self := flag.Bool("selftest", false, "see that a build with a slow call is found")
	table := flag.Bool("table", false, "print the speed table of ARCHITECTURE.md")
	rounds := flag.Int("rounds", 7, "measurements of each figure")
	long := flag.Duration("long", 0, "only run calls through dynmcp for so `long` and print its memory; then compare its goroutines with those of a fresh one (where everything is measured: 30s)")
	flag.Parse()
	if err := programs.EnterRoot(); err != nil {
		log.Fatal(err)
	}
	dir, err := programs.Build("./cmd/dynmcp", "./bench/upstream", "./bench/httpupstream", "./bench/pump", "./bench/httppump", "./bench/frontpump", "./bench/sdkpair")
	if err == nil {
		in := func(name string) string { return filepath.Join(dir, name) }
		bin := binaries{in("dynmcp"), in("upstream"), in("httpupstream"), in("pump"), in("httppump"), in("frontpump"), in("sdkpair"), dir, also, false, &changes{}, newTable()}
		if *against != "" {
			err = bin.addCommit(*against)
		}
		switch {
		case err != nil:
		case *self:
			err = bin.selftest(*rounds)
		case *table:
			err = speedTable(bin, *rounds)
		default:
			err = run(bin, *only, *rounds, *long)
			bin.changes.print(*against)
		}
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

// run measures what was asked for.
func run(bin binaries, only string, rounds int, long time.Duration) error {
	switch {
	case long > 0:
		return longRun(bin, long)
	case only == "capacity":
		return capacity(bin, rounds)
	case only == "short":
		return short(bin, rounds)
	}
	steps := []struct {
		name string
		run  func(binaries, int) error
	}{
		{"bursts", bursts},
		{"reloads", reloads},
		{"starts", starts},
		{"stored", stored},
		{"slow", slowReader},
		{"sharing", sharing},
		{"recording", recording},
	}
	for _, step := range steps {
		if step.name == only {
			return step.run(bin, rounds)
		}
	}
	named := func(s scenario) bool { return strings.Contains(s.String(), only) }
	if err := calling(bin, named, rounds); err != nil || only != "" {
		return err
	}
	for _, step := range steps {
		if err := step.run(bin, rounds); err != nil {
			return err
		}
	}
	if err := allocations(); err != nil {
		return err
	}
	fmt.Printf("\nlong run, 1 KB both ways, 64 in flight\n")
	return longRun(bin, usualLong)
}

// calling measures the scenarios that are wanted.
func calling(bin binaries, wanted func(scenario) bool, rounds int) error {
	for _, s := range scenarios {
		if wanted(s) {
			if err := bin.measure(bin.variantsFor(s), s, rounds); err != nil {
				return err
			}
		}
	}
	if err := callingHTTP(bin, wanted, rounds); err != nil {
		return err
	}
	return callingGateway(bin, wanted, rounds)
}

// short measures three scenarios that each read something else of a call.
func short(bin binaries, rounds int) error {
	bin.few = true
	return calling(bin, oneOf("100 B both ways, 64 in flight", "10 KB, several arguments both ways, 64 in flight", "10 KB, structured result both ways, 64 in flight"), rounds)
}

func oneOf(names ...string) func(scenario) bool {
	return func(s scenario) bool { return slices.Contains(names, s.String()) }
}

// usualLong is how long calls are kept going where everything is measured.
const usualLong = 30 * time.Second

// allocations has Go's own benchmark count them. They are those of the process
// that is dynmcp, of which no other process can see them.
func allocations() error {
	fmt.Printf("\nallocations of a forwarded call\n")
	cmd := exec.Command("go", "test", "-run", "^$", "-bench", "^BenchmarkForward$", "-benchtime", "300ms", ".")
	cmd.Dir = "bench"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// binaries are the paths of what is measured.
type binaries struct {
	dynmcp, upstream, httpupstream, pump, httppump, frontpump, sdkpair, dir string
	also                                                                    []variant
	few                                                                     bool     // only pump and dynmcp, of every scenario
	changes                                                                 *changes // since the commit of -against
	table                                                                   *table
}

// addCommit builds dynmcp of a commit, to be measured beside this one.
func (b *binaries) addCommit(commit string) error {
	source, err := programs.Source(b.dir, commit)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	program := filepath.Join(b.dir, "dynmcp-before")
	if err := programs.Go(nil, "-C", source, "build", "-o", program, "./cmd/dynmcp"); err != nil {
		return err
	}
	b.also = append(b.also, variant{name: before, argv: []string{program}})
	return nil
}

// write writes a config beside the programs.
func (b binaries) write(name, format string, args ...any) (path string, err error) {
	path = filepath.Join(b.dir, name)
	return path, os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600)
}

// serve is dynmcp over HTTP, onStdio is it over pipes.
func serve(program, config string) []string {
	return []string{program, "serve", "--http", "127.0.0.1:0", "-c", config}
}

func onStdio(program, config string) []string {
	return []string{program, "--log-level", "error", "-c", config}
}

// variantsFor are the variants of a scenario: with direct, dynmcp shows the tools themselves.
func (b binaries) variantsFor(s scenario) []variant {
	all := b.variants()
	if s.how.direct {
		for i, v := range all {
			if v.name != "direct" && v.name != "pump" && v.name != "sdkpair" {
				all[i].argv = slices.Insert(slices.Clone(v.argv), 1, "--expose", "direct")
			}
		}
	}
	return all
}

// variants are the ways from the driver to the upstream, in the order in which
// they are measured and shown.
func (b binaries) variants() []variant {
	own := func(path string) []string { return []string{path, "--log-level", "error", "--", b.upstream} }
	all := []variant{
		{"direct", []string{b.upstream}, "echo", onPipes},
		{"pump", []string{b.pump, b.upstream}, "upstream/echo", onPipes},
		{"dynmcp", own(b.dynmcp), "echo", onPipes},
		{"sdkpair", []string{b.sdkpair, b.upstream}, "echo", onPipes},
	}
	for _, v := range b.also {
		all = append(all, variant{v.name, own(v.argv[0]), "echo", onPipes})
	}
	return all
}

type variant struct {
	name string
	argv []string
	tool string
	way  wayIn
}

// A wayIn is how the driver reaches what is measured.
type wayIn int

const (
	onPipes       wayIn = iota
	overHTTP            // with a session of each host
	statelessHTTP       // each request stands for itself
)

// measure runs one scenario over all variants, round by round.
func (b binaries) measure(variants []variant, s scenario, rounds int) error {
	fmt.Printf("\n%s, %d calls a round\n", s, s.calls)
	results := map[string][]sample{}
	var all []sample
	for range rounds {
		for _, v := range variants {
			if (s.few || b.few) && slices.Contains([]string{"direct", "sdkpair", "2026-07"}, v.name) {
				continue
			}
			s := s
			if v.name == "sdkpair" { // which takes ten times as long and more
				s.calls /= 10
			}
			sample, err := v.run(s)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			results[v.name] = append(results[v.name], sample)
			all = append(all, sample)
		}
	}
	fmt.Printf("  %-8s %26s %26s %9s %9s %12s %12s\n", "", "p50 µs (least–greatest)", "calls/s (least–greatest)", "p50/pump", "rate/pump", "CPU µs/call", "peak RSS MB")
	for _, v := range variants {
		got, floor := results[v.name], results["pump"]
		if got == nil {
			continue
		}
		fmt.Printf("  %-8s %26s %26s %9.2f %9.2f %12.1f %12.0f\n", v.name,
			spread(values(got, p50)), spread(values(got, rate)), ratio(got, floor, p50), ratio(got, floor, rate),
			median(values(got, cpu)), median(values(got, peak)))
	}
	b.changes.note(s, results["dynmcp"], results[before])
	b.table.note(s, results)
	fmt.Printf("  others used %s %% of the machine\n", spread(values(all, func(s sample) float64 { return 100 * s.foreign })))
	if n := slices.Max(values(all, func(s sample) float64 { return float64(s.refused) })); n > 0 {
		fmt.Printf("  in one round %.0f calls were refused because too much waited for the upstream\n", n)
	}
	return nil
}
