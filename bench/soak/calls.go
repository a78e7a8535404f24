package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// inFlight is how many calls are on their way at once.
const inFlight = 64

// faults are servers that misbehave. Every tenth call goes to one of them.
var faults = []entry{
	{name: "twice", args: []string{"-fault", "twice"}},
	{name: "garbage", args: []string{"-fault", "garbage-mid,unknown-id,glued"}},
	{name: "batch", args: []string{"-fault", "batch,crlf,blank"}},
	{name: "nothing", args: []string{"-fault", "noresult"}},
	{name: "hangs", args: []string{"-fault", "hang-call"}, fields: map[string]any{"timeout": "200ms"}},
	{name: "late", args: []string{"-fault", "late"}, fields: map[string]any{"timeout": "200ms"}},
	{name: "huge", args: []string{"-fault", "huge:2000000"}, fields: map[string]any{"max_message_bytes": 1 << 20}},
	{name: "crashes", args: []string{"-fault", "crash-call"}, fields: map[string]any{"description": "Crashes"}},
	{name: "partial", args: []string{"-fault", "partial"}, fields: map[string]any{"description": "Breaks off"}},
}

// A tally is what became of calls.
type tally struct {
	answered, failed, twice, misrouted int
	seen                               []bool
}

func (t *tally) take(a answer) error {
	id, err := strconv.Atoi(string(a.ID))
	if err != nil || id < 0 || id >= len(t.seen) {
		return fmt.Errorf("an answer to nothing: %.200s", a.line)
	}
	switch {
	case t.seen[id]:
		t.twice++
		return nil
	case strings.Contains(a.line, "outcome"):
		t.failed++
	case string(a.Result.StructuredContent) != nonce(id):
		t.misrouted++
		fmt.Printf("  call %d got %.200s\n", id, a.line)
	}
	t.seen[id] = true
	t.answered++
	return nil
}

func nonce(id int) string { return fmt.Sprintf(`{"nonce":%d}`, id) }

// calls makes n calls, some to servers that misbehave.
func (s *soak) calls(n int) error {
	h, err := s.start(append([]entry{{name: "good"}}, faults...)...)
	if err != nil {
		return err
	}
	t := &tally{seen: make([]bool, n)}
	slots := make(chan struct{}, inFlight)
	began := time.Now()
	go func() {
		for id := range n {
			slots <- struct{}{}
			server := "good"
			if id%10 == 0 {
				server = faults[id/10%len(faults)].name
			}
			h.call(id, server+"/echo", nonce(id))
		}
	}()
	for t.answered < n {
		a, err := h.answer()
		if err != nil {
			return fmt.Errorf("after %d of %d answers: %w", t.answered, n, err)
		}
		before := t.answered
		if err := t.take(a); err != nil {
			return err
		}
		if t.answered == before {
			continue
		}
		<-slots
		if t.answered%max(n/10, 1) == 0 {
			fmt.Printf("calls: %8d  RSS %d MB, %d descriptors, %d threads\n", t.answered, h.rss()>>10, h.descriptors(), h.status("Threads:"))
		}
	}
	took := time.Since(began)
	if err := h.stop(); err != nil {
		return err
	}
	fmt.Printf("calls: %d in %v: %d lost, %d twice, %d misrouted; %d failed and said whether they ran\n", n, rounded(took), n-t.answered, t.twice, t.misrouted, t.failed)
	s.must("answers that came twice", t.twice, 0)
	s.must("answers of another call", t.misrouted, 0)
	s.must("processes left", processes(h.marker), 0)
	return nil
}

func (h *host) rss() int { return h.status("VmRSS:") }

// status returns a number of /proc/PID/status.
func (h *host) status(key string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(text), key)
	var number int
	_, _ = fmt.Sscan(rest, &number) // 0 where there is none
	return number
}

func (h *host) descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", h.cmd.Process.Pid))
	return len(entries)
}

// deaths makes calls whose server does the work, writes it down, and dies before
// it answers. Each must have run once at most, and must not be said to have
// failed for sure.
func (s *soak) deaths(n int) error {
	ledger := filepath.Join(s.dir, "deaths")
	h, err := s.start(entry{name: "dies", args: []string{"-fault", "crash-call", "-ledger", ledger}})
	if err != nil {
		return err
	}
	unknown := 0
	for id := range n {
		h.call(id, "dies/echo", nonce(id))
		a, err := h.answer()
		if err != nil {
			return err
		}
		if strings.Contains(a.line, "outcome unknown") {
			unknown++
		}
	}
	if err := h.stop(); err != nil {
		return err
	}
	ran := count(ledger, "call echo")
	fmt.Printf("ledger: %d calls, %d ran, %d are said to be unknown\n", n, ran, unknown)
	s.must("calls that ran", ran, unknown)
	return nil
}

// hostile compares the calls of 19 servers with and without a 20th that floods.
func (s *soak) hostile(n int) error {
	var entries []entry
	for i := range 20 {
		entries = append(entries, entry{name: fmt.Sprintf("server-%d", i)})
	}
	entries[0].args = []string{"-fault", "flood:20000", "-fault-tool", "pid"}
	h, err := s.start(entries...)
	if err != nil {
		return err
	}
	var p99 [2]time.Duration
	for round := range p99 {
		took := make([]time.Duration, 0, n)
		flooding := false
		for id := 0; len(took) < n; {
			if round == 1 && !flooding {
				h.send(`{"jsonrpc":"2.0","id":"flood","method":"tools/call","params":{"name":"use_tool","arguments":{"tool_name":"server-0/pid","tool_input":{}}}}`)
				flooding = true
			}
			sent := time.Now()
			h.call(id, fmt.Sprintf("server-%d/echo", 1+id%19), nonce(id))
			for {
				a, err := h.answer()
				if err != nil {
					return err
				}
				if string(a.ID) == `"flood"` {
					flooding = false
					continue
				}
				break
			}
			took = append(took, time.Since(sent))
			id++
		}
		slices.Sort(took)
		p99[round] = took[n*99/100]
	}
	fmt.Printf("hostile: p99 of 19 servers %v, with a 20th that floods %v\n", p99[0], p99[1])
	return h.stop()
}
