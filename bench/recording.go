package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/procs"
	"github.com/dynmcp/dynmcp/bench/internal/sabotage"
	"github.com/dynmcp/dynmcp/bench/internal/verdict"
)

var (
	recordedCalls  = flag.Int("recorded", 4000, "how many `calls` a round of \"recording\" has")
	recordedFaults = flag.Bool("recorded-faults", false, "have \"recording\" judge builds of dynmcp with faults, which it must find")
)

// What the record of calls may cost, and what a kill may lose of it.
const (
	mostRecordCost = 1.05 // times the p50 without
	mostRecordLost = 100 * time.Millisecond
)

// recording compares calls of 100 B with the record of calls on and off, in turns, and looks
// at what is recorded when dynmcp is ended and killed. What it finds wrong is its error.
func recording(bin binaries, rounds int) error {
	if !*recordedFaults {
		v, err := judgeRecord(bin, rounds)
		if err == nil && !v.Close() {
			err = errors.New("the record of calls is not as it must be")
		}
		return err
	}
	var v verdict.Verdict
	for _, f := range recordFaults {
		fmt.Printf("\n%s:\n", f.Name)
		broken := bin
		var err error
		if broken.dynmcp, err = f.Build(filepath.Join(bin.dir, "fault")); err != nil {
			return err
		}
		of, err := judgeRecord(broken, rounds)
		if err != nil {
			return err
		}
		f.Judge(&v, of)
	}
	if !v.Close() {
		return errors.New("a fault was not found")
	}
	return nil
}

var recordFaults = []sabotage.Fault{
	{
		Name:  "the last lines are not written",
		Edits: []sabotage.Edit{{File: "internal/activity/log.go", Old: "		l.flush()\n", New: "		if !ending {\n			l.flush()\n		}\n"}},
		Found: "SIGTERM",
	},
	{
		Name:  "lines are written late",
		Edits: []sabotage.Edit{{File: "internal/activity/log.go", Old: "writeEvery = 50 * time.Millisecond", New: "writeEvery = 5 * time.Second"}},
		Found: "SIGKILL",
	},
	{
		Name: "calls wait for the record",
		Edits: []sabotage.Edit{{File: "internal/activity/log.go", Old: "	size := entrySize + len(e.Input) + len(e.Output)\n",
			New: "	size := entrySize + len(e.Input) + len(e.Output)\n	for began := time.Now(); time.Since(began) < 100*time.Microsecond; {\n	}\n"}},
		Found: "p50",
	},
}

func judgeRecord(bin binaries, rounds int) (*verdict.Verdict, error) {
	s := scenario{"100 B", 100, text, 1, *recordedCalls, false, how{}}
	fmt.Printf("\nrecording, %s, %d calls a round\n", s, s.calls)
	v := new(verdict.Verdict)
	samples := map[bool][]sample{}
	for range rounds {
		for _, on := range []bool{false, true} {
			got, lost, err := recorded(bin, s, on, syscall.SIGTERM)
			if err != nil {
				return nil, err
			}
			if lost != 0 {
				v.Fail("%d lines are missing after SIGTERM", lost)
			}
			samples[on] = append(samples[on], got)
		}
	}
	for _, on := range []bool{false, true} {
		fmt.Printf("  %-10v p50 %s µs, %.1f µs of CPU a call\n", map[bool]string{false: "off", true: "on"}[on], spread(values(samples[on], p50)), median(values(samples[on], cpu)))
	}
	times := ratio(samples[true], samples[false], p50)
	fmt.Printf("  p50 on/off %.3f\n", times)
	if times > mostRecordCost {
		v.Fail("p50 is %.3f times that without a record, at most %.2f", times, mostRecordCost)
	}
	got, lost, err := recorded(bin, s, true, syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	ago := time.Duration(float64(lost) / got.rate * float64(time.Second))
	fmt.Printf("  SIGKILL    %d lines are missing, of the last %v\n", lost, ago.Round(time.Millisecond))
	if ago > mostRecordLost {
		v.Fail("SIGKILL lost the calls of the last %v, at most %v", ago.Round(time.Millisecond), mostRecordLost)
	}
	return v, nil
}

// recorded makes calls, ends dynmcp by a signal when they are answered, and counts the lines
// that are missing.
func recorded(bin binaries, s scenario, on bool, end syscall.Signal) (got sample, lost int, err error) {
	dir := filepath.Join(bin.dir, "record")
	if err := os.RemoveAll(dir); err != nil {
		return sample{}, 0, err
	}
	activity := ""
	if on {
		activity = fmt.Sprintf(`, "activity": {"dir": %q, "max_bytes": 8589934592}`, dir)
	}
	config, err := bin.write("recording.json", `{"mcp": {"up": {"command": %q}}%s}`, bin.upstream, activity)
	if err != nil {
		return sample{}, 0, err
	}
	p, err := startProcess(onStdio(bin.dynmcp, config))
	if err != nil {
		return sample{}, 0, err
	}
	defer p.stop()
	calls, warm := newCalls("up/echo", "", s), s
	warm.calls = s.calls/10 + 1
	if _, err := p.drive(calls, warm); err != nil {
		return sample{}, 0, err
	}
	before := procs.CPU(p.cmd.Process.Pid)
	if got, err = p.drive(calls, s); err != nil {
		return sample{}, 0, err
	}
	got.cpu = (procs.CPU(p.cmd.Process.Pid) - before) / time.Duration(s.calls)
	if err := p.cmd.Process.Signal(end); err != nil {
		return sample{}, 0, err
	}
	_ = p.cmd.Wait() // it ends because of the signal
	if on {
		lost, err = missing(dir, warm.calls+s.calls)
	}
	return got, lost, err
}

// missing returns how many of so many calls a record does not have.
func missing(dir string, calls int) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, file := range files {
		text, readErr := os.ReadFile(file)
		err = errors.Join(err, readErr)
		calls -= bytes.Count(text, []byte(`"tool":"echo"`))
	}
	return calls, err
}
