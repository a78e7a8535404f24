package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	others   = 19 // servers beside the hostile one
	abreast  = 4  // calls to them at once
	bothWays = 3  // rounds without and with hostility
)

// A hostility is a way in which a server misbehaves while others work.
type hostility struct {
	name   string
	args   []string
	fields map[string]any
	tool   string // a call of it causes the misbehavior
	input  string
	atOnce int // number of such calls
	least  int // a round waits for so many answers to them; 0 is one
	// next replaces tool and input if it is set: it returns them after each answer. It
	// gets the zero answer before the first call of a round and after the last.
	next func(last answer) (tool, input string)
}

func hostilities() []hostility {
	spam := strings.Repeat(strings.Repeat("spam ", 19)+"spam\n", 5000)
	return []hostility{
		{name: "20,000 notifications", args: []string{"-fault", "flood:20000"}, tool: "echo", atOnce: 1},
		{name: "lines of 100 MB", args: []string{"-fault", "huge"}, tool: "echo", atOnce: 1},
		{name: "leaves stdin unread", fields: map[string]any{"timeout": "500ms"}, next: unread(), atOnce: 1, least: 2},
		{name: "hangs", args: []string{"-fault", "hang-call"}, fields: map[string]any{"timeout": "100ms"}, tool: "echo", atOnce: 16},
		{name: "40,000 list_changed", args: []string{"-fault", "flood-lc"}, tool: "echo", atOnce: 1},
		{name: "0.5 MB on stderr", tool: "stderr", input: fmt.Sprintf(`{"text":%q}`, spam), atOnce: 1},
		{name: "junk lines", args: []string{"-fault", "garbage-mid"}, tool: "echo", atOnce: 16},
		{name: "crashes", args: []string{"-fault", "crash-call"}, tool: "echo", atOnce: 1},
	}
}

// unread stops the server, so that it does not read its stdin, and then sends more than
// fits into a pipe. When that call is answered, it kills the server.
func unread() func(answer) (tool, input string) {
	pid := 0
	big := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 4<<20))
	return func(last answer) (tool, input string) {
		if pid != 0 {
			signal(pid, syscall.SIGKILL)
			pid = 0
			return "pid", `{}`
		}
		if last.Result.IsError || len(last.Result.Content) == 0 {
			return "pid", `{}` // the server is being restarted
		}
		pid, _ = strconv.Atoi(last.Result.Content[0].Text)
		signal(pid, sigstop)
		return "echo", big
	}
}

// sigstop is SIGSTOP on Linux. Package syscall has none for Windows, where this only
// has to compile.
const sigstop = syscall.Signal(19)

// signal sends a signal to a process, unless it has ended.
func signal(pid int, sig syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(sig)
		_ = p.Release()
	}
}

// hostile compares calls to 19 servers with and without a hostile 20th server, in turn.
// It prints their times and judges whether they are answered.
func (s *soak) hostile(n int) error {
	fmt.Printf("hostile: calls of %d servers, %d at once, without and with a hostile one beside them\n", others, abreast)
	fmt.Printf("  %-22s %18s %18s %10s %10s %8s\n", "", "median", "p99", "p99 ratio", "rate ratio", "calls")
	for _, kind := range hostilities() {
		if err := s.withHostility(kind, n); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

func (s *soak) withHostility(kind hostility, n int) error {
	entries := []entry{{name: "hostile", args: kind.args, fields: kind.fields}}
	for i := range others {
		entries = append(entries, entry{name: fmt.Sprintf("server-%d", i)})
	}
	h, err := s.start(entries...)
	if err != nil {
		return err
	}
	defer h.End()
	b := &beside{host: h, kind: kind, tally: newTally(func(int) bool { return false })}
	for range bothWays {
		for with := range b.took {
			if err := b.round(with, n); err != nil {
				s.judge(b.tally)
				return err
			}
		}
	}
	b.print()
	s.judge(b.tally)
	if err := h.Stop(); err != nil {
		return err
	}
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// A beside makes calls to the other servers, without (0) and with (1) hostility.
type beside struct {
	host  *host
	kind  hostility
	tally *tally
	sent  []time.Time // by number
	took  [2][]time.Duration
	spent [2]time.Duration
	calls int // running calls to the others
	acts  int // running hostile calls
	acted int // answered hostile calls
}

// round makes n calls, or more until the hostile calls have enough answers. It returns
// when all calls are answered.
func (b *beside) round(with, n int) error {
	began, acted, done := time.Now(), b.acted, 0
	for range abreast {
		b.call()
	}
	for range with * b.kind.atOnce {
		b.act(answer{})
	}
	for over := false; b.calls+b.acts > 0; {
		a, err := b.host.Answer()
		if err != nil {
			return err
		}
		if done >= n && (with == 0 || b.acted >= acted+max(b.kind.least, 1)) && !over {
			over = true
			b.spent[with] += time.Since(began)
		}
		isCall, err := b.take(a, with, over)
		if err != nil {
			return err
		}
		if isCall && !over {
			done++
		}
	}
	return nil
}

// take counts an answer and makes the next call, unless the round is over.
func (b *beside) take(a answer, with int, over bool) (isCall bool, err error) {
	if strings.HasPrefix(string(a.ID), `"hostile`) {
		b.acts--
		b.acted++
		switch {
		case !over:
			b.act(a)
		case b.kind.next != nil:
			b.kind.next(answer{}) // cleans up
		}
		return false, nil
	}
	answered := b.tally.answered
	if err := b.tally.take(a); err != nil || b.tally.answered == answered {
		return false, err
	}
	id, _ := strconv.Atoi(string(a.ID)) // the tally has checked it
	b.calls--
	if !over {
		b.took[with] = append(b.took[with], time.Since(b.sent[id]))
		b.call()
	}
	return true, nil
}

func (b *beside) call() {
	id := b.tally.next()
	b.calls++
	b.sent = append(b.sent, time.Now())
	b.host.call(id, fmt.Sprintf("server-%d/echo", id%others), nonce(id))
}

func (b *beside) act(last answer) {
	tool, input := b.kind.tool, b.kind.input
	if b.kind.next != nil {
		tool, input = b.kind.next(last)
	}
	if input == "" {
		input = `{}`
	}
	b.acts++
	b.host.ask(fmt.Sprintf(`"hostile %d"`, b.acted+b.acts), "use_tool", use("hostile/"+tool, input))
}

func (b *beside) print() {
	var median, p99 [2]time.Duration
	var rate [2]float64
	for with, took := range b.took {
		slices.Sort(took)
		median[with], p99[with] = took[len(took)/2], took[len(took)*99/100]
		rate[with] = float64(len(took)) / b.spent[with].Seconds()
	}
	fmt.Printf("  %-22s %18s %18s %10.2f %10.2f %8d\n", b.kind.name, pair(median), pair(p99),
		float64(p99[1])/math.Max(float64(p99[0]), 1), rate[1]/rate[0], len(b.tally.seen))
}

func pair(d [2]time.Duration) string {
	return fmt.Sprintf("%v %v", d[0].Round(10*time.Microsecond), d[1].Round(10*time.Microsecond))
}
