package main

import (
	"fmt"
	"slices"
	"strings"
)

// before is the variant of the commit that -against names.
const before = "before"

// changes are the figures that became worse since a commit.
type changes struct {
	slower    []string
	scenarios int
	busy      int // scenarios of which CPU alone was compared
}

// worseBy is the median ratio, round by round, from which on a figure became worse, if it was also
// worse in three quarters of the rounds. So one disturbed round does not decide.
const worseBy = 1.1

// busy is the share of the machine used by other processes from which on times are not compared: the
// programs may have been disturbed differently.
const busy = 0.2

// note compares the samples of a scenario with those of the earlier commit.
func (c *changes) note(s scenario, now, then []sample) {
	if len(now) == 0 || len(then) == 0 {
		return
	}
	c.scenarios++
	figures := []struct {
		name string
		cost func(sample) float64
	}{
		{"CPU", cpu},
		{"p50", p50},
		{"time a call", func(s sample) float64 { return 1 / s.rate }},
	}
	if median(values(now, foreign)) > busy {
		c.busy++
		figures = figures[:1]
	}
	for _, figure := range figures {
		if by, is := worse(now, then, figure.cost); is {
			c.slower = append(c.slower, fmt.Sprintf("%s: %s x %.2f", s, figure.name, by))
		}
	}
}

// worse returns the median ratio of a cost to the earlier one, and whether it became worse.
func worse(now, then []sample, cost func(sample) float64) (by float64, is bool) {
	ratios := make([]float64, min(len(now), len(then)))
	higher := 0
	for i := range ratios {
		if ratios[i] = cost(now[i]) / cost(then[i]); ratios[i] > 1 {
			higher++
		}
	}
	slices.Sort(ratios)
	by = ratios[len(ratios)/2]
	return by, by >= worseBy && 4*higher >= 3*len(ratios)
}

// print prints in one line what became slower.
func (c *changes) print(commit string) {
	if c.scenarios == 0 {
		return
	}
	what := "nothing became slower by a tenth"
	if len(c.slower) > 0 {
		what = "slower: " + strings.Join(c.slower, "; ")
	}
	if c.busy > 0 {
		what += fmt.Sprintf(" (times not compared in %d of %d scenarios: the machine was busy)", c.busy, c.scenarios)
	}
	fmt.Printf("\nsince %s: %s\n", commit, what)
}
