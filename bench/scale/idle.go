package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// idle compares the calls of a host that is alone with those of a host beside 10,000
// sessions and 100 servers, whose tools an earlier run has stored. It measures both in
// turn.
func idle(w io.Writer, rounds int) error {
	g, err := buildGrowing()
	if err != nil {
		return err
	}
	defer os.RemoveAll(g.dir)
	alone, err := g.serve(g.upstream())
	if err != nil {
		return err
	}
	defer alone.close()
	many := g.upstream() + "," + g.entries(100, `, "args": ["-tools", "50"], "description": "Answers what it is sent. Use it to measure."`)
	warm := exec.Command(filepath.Join(g.dir, "dynmcp"), "warm", "-c", g.config())
	if err := g.write(many); err != nil {
		return err
	}
	if out, err := warm.CombinedOutput(); err != nil {
		return fmt.Errorf("warm: %w\n%s", err, out)
	}
	crowded, err := g.serve(many)
	if err != nil {
		return err
	}
	defer crowded.close()
	if _, err := crowded.sessions(10_000); err != nil {
		return err
	}
	fmt.Fprintf(w, "idle: a call beside 10,000 sessions and 100 stored servers, by one alone\n")
	for _, size := range []int{100, 10 << 10} {
		ratios := make([]float64, 10*rounds)
		for i := range ratios {
			var took [2]time.Duration
			for j, gw := range []*gateway{alone, crowded} {
				if took[j], err = gw.manyCalls(500, size); err != nil {
					return err
				}
			}
			ratios[i] = took[1].Seconds() / took[0].Seconds()
		}
		slices.Sort(ratios)
		fmt.Fprintf(w, "  %6d B: p50 x %.3f (half of %d rounds: %.3f–%.3f)\n", size, middle(ratios), len(ratios), ratios[len(ratios)/4], ratios[len(ratios)*3/4])
	}
	return nil
}

// manyCalls returns the median time of calls in a new session.
func (gw *gateway) manyCalls(count, size int) (time.Duration, error) {
	hosts, err := gw.sessions(1)
	if err != nil {
		return 0, err
	}
	text, took := strings.Repeat("abcdefgh", size/8), make([]time.Duration, count)
	for i := range took {
		began := time.Now()
		if err := call(hosts[0], "upstream/echo", text); err != nil {
			return 0, err
		}
		took[i] = time.Since(began)
	}
	return middle(took), hosts[0].End(context.Background())
}
