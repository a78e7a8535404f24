package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/dynmcp/dynmcp/bench/internal/hosts"
	"github.com/dynmcp/dynmcp/bench/internal/stacks"
)

// inFlight is the number of calls that run at once.
const inFlight = 64

// Servers in rude misbehave but answer, and those in broken fail calls. Every tenth
// call goes to one of either.
var (
	rude = []entry{
		{name: "twice", args: []string{"-fault", "twice"}},
		{name: "garbage", args: []string{"-fault", "garbage-mid"}},
		{name: "nobodys", args: []string{"-fault", "unknown-id"}},
		{name: "glued", args: []string{"-fault", "glued"}},
		{name: "batch", args: []string{"-fault", "batch,crlf,blank"}},
	}
	broken = []entry{
		{name: "nothing", args: []string{"-fault", "noresult"}},
		{name: "hangs", args: []string{"-fault", "hang-call"}, fields: map[string]any{"timeout": "200ms"}},
		{name: "late", args: []string{"-fault", "late"}, fields: map[string]any{"timeout": "200ms"}},
		{name: "huge", args: []string{"-fault", "huge:2000000"}, fields: map[string]any{"max_message_bytes": 1 << 20}},
		{name: "crashes", args: []string{"-fault", "crash-call"}, fields: map[string]any{"description": "Crashes"}},
		{name: "partial", args: []string{"-fault", "partial"}, fields: map[string]any{"description": "Breaks off"}},
	}
)

// callServers returns the servers of the step calls. Their faults affect the tool echo
// only, so that other tools show whether a server runs.
func callServers() []entry {
	all := []entry{{name: "good"}}
	for _, e := range slices.Concat(rude, broken) {
		e.args = append([]string{"-fault-tool", "echo"}, e.args...)
		all = append(all, e)
	}
	return all
}

// callee returns the server of a call.
func callee(id int) (name string, mayFail bool) {
	if id%10 != 0 {
		return "good", false
	}
	i := id / 10 % (len(rude) + len(broken))
	if i < len(rude) {
		return rude[i].name, false
	}
	return broken[i-len(rude)].name, true
}

// calls makes n calls, some to servers that misbehave. Then it compares the resources
// of dynmcp with those of another that has made no calls.
func (s *soak) calls(n int) error {
	fresh, err := s.start(callServers()...)
	if err != nil {
		return err
	}
	defer fresh.End()
	before, err := fresh.restOnPipes(callServers(), hosts.NoOther)
	if err != nil {
		return err
	}
	goroutines := stacks.Parse(fresh.Quit())

	h, err := s.start(callServers()...)
	if err != nil {
		return err
	}
	defer h.End()
	t := newTally(func(id int) bool { _, may := callee(id); return may })
	memory, err := h.drive(t, n)
	if err != nil {
		s.judge(t)
		return err
	}
	after, err := h.restOnPipes(callServers(), t.take)
	if err != nil {
		return err
	}
	left := stacks.Parse(h.Quit())

	s.judge(t)
	s.judgeMemory("calls", n, memory)
	s.compare("calls", before, after, goroutines, left)
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// keep makes n calls of echo, always atOnce at a time, each to the server for its number.
// It calls answered for the first answer to each.
func (h *host) keep(t *tally, n, atOnce int, serverOf func(id int) string, answered func(answer)) error {
	next := func() {
		if len(t.seen) < n {
			id := t.next()
			h.call(id, serverOf(id)+"/echo", nonce(id))
		}
	}
	for range atOnce {
		next()
	}
	for t.answered < n {
		a, err := h.Answer()
		if err != nil {
			return err
		}
		before := t.answered
		if err := t.take(a); err != nil {
			return err
		}
		if t.answered > before {
			next()
			answered(a)
		}
	}
	return nil
}

// drive makes n calls and samples the memory of dynmcp a hundred times.
func (h *host) drive(t *tally, n int) (memory []int, err error) {
	began := time.Now()
	serverOf := func(id int) string { name, _ := callee(id); return name }
	err = h.keep(t, n, inFlight, serverOf, func(answer) {
		if t.answered%max(n/100, 1) == 0 {
			memory = append(memory, h.status("VmRSS:")>>10)
		}
		if t.answered%max(n/10, 1) == 0 {
			fmt.Printf("calls: %8d  RSS %d MB, %d descriptors, %d threads\n", t.answered, memory[len(memory)-1], h.descriptors(), h.status("Threads:"))
		}
	})
	if err != nil {
		return nil, err
	}
	fmt.Printf("calls: %d in %v: %d lost, %d twice, %d misrouted; failed as they had to: %v\n",
		n, rounded(time.Since(began)), t.lost(), t.twice, t.misrouted, t.outcomes)
	return memory, nil
}
