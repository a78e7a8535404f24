package main

import (
	"strings"
	"testing"
	"time"
)

func TestWhatBecameSlower(t *testing.T) {
	t.Parallel()
	costs := func(us ...int) (all []sample) {
		for _, n := range us {
			all = append(all, sample{p50: time.Duration(n) * time.Microsecond, rate: 1e6 / float64(n), cpu: time.Duration(n) * time.Microsecond})
		}
		return all
	}
	disturbed := func(all []sample) []sample {
		for i := range all {
			all[i].foreign = 2 * busy
		}
		return all
	}
	for name, test := range map[string]struct {
		now, then []sample
		want      int
	}{
		"on a busy machine":           {disturbed(costs(15, 16, 15, 14)), costs(10, 10, 10, 10), 1},
		"by half":                     {costs(15, 16, 15, 14), costs(10, 10, 10, 10), 3},
		"the same":                    {costs(10, 11, 10, 9), costs(10, 10, 10, 10), 0},
		"faster":                      {costs(5, 5, 5, 5), costs(10, 10, 10, 10), 0},
		"one disturbed round":         {costs(10, 40, 10, 10), costs(10, 10, 10, 10), 0},
		"before was disturbed, too":   {costs(12, 12, 12, 12), costs(10, 50, 10, 10), 3},
		"nothing was measured before": {costs(12), nil, 0},
	} {
		c := &changes{}
		c.note(scenarios[0], test.now, test.then)
		if len(c.slower) != test.want {
			t.Errorf("%s: slower is %q, want %d figures", name, c.slower, test.want)
		}
	}
}

func TestFaultsFitTheirFiles(t *testing.T) {
	for _, f := range append(recordFaults, slowCall) {
		if _, err := f.Apply(".."); err != nil {
			t.Error(err)
		}
	}
}

// The texts of the benchmarks have as many escapes as those of tools.
func TestEscapesOfTexts(t *testing.T) {
	t.Parallel()
	if each := 100_000 / strings.Count(text(100_000), `\`); each < 20 || each > 30 {
		t.Errorf("there is an escape every %d bytes, want 25", each)
	}
}
