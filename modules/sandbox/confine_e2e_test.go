//go:build e2e

package sandbox

import "testing"

func TestWarning(t *testing.T) {
	missing := []string{"TCP (Linux 6.7 can)", "signals"}
	for _, c := range []struct {
		missing    []string
		bestEffort bool
		want       string
	}{
		{nil, false, ""},
		{nil, true, ""},
		{missing, true, "its sandbox is incomplete: this system cannot restrict TCP (Linux 6.7 can), nor signals"},
		{missing, false, `it is not started here: this system cannot limit TCP (Linux 6.7 can), nor signals ("best_effort": true in the sandbox starts the server all the same)`},
	} {
		if got := unlimited(c.missing, c.bestEffort); got != c.want {
			t.Errorf("%q, best effort %v: got %q, want %q", c.missing, c.bestEffort, got, c.want)
		}
	}
}
