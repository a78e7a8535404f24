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
	bothWays = 3  // rounds without the hostility, and with it
)

// A hostility is a way to misbehave while others work.
type hostility struct {
	name   string
	args   []string
	fields map[string]any
	tool   string // what is called to bring it about
	input  string
	atOnce int // such calls
	least  int // answers to them that a round waits for; 0 is one
	// next replaces tool and input: it chooses them after each answer. It gets
	// the zero answer before the first call of a round and after the last.
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

// unread stops the server, so that nobody reads its stdin, and then sends more
// than a pipe holds. When that call has its answer the server is killed.
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
			return "pid", `{}` // it is being started again
		}
		pid, _ = strconv.Atoi(last.Result.Content[0].Text)
		signal(pid, sigstop)
		return "echo", big
	}
}

// sigstop is SIGSTOP of Linux: package syscall has none for Windows, where this
// compiles but does not run.
const sigstop = syscall.Signal(19)

// signal reaches a process unless it has ended: dynmcp may have seen to that.
func signal(pid int, sig syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(sig)
		_ = p.Release()
	}
}

// hostile compares the calls of 19 servers with and without a 20th that is
// hostile, in turn. How long they take is printed; that they are answered is
// judged.
func (s *soak) hostile(n int) error {
	fmt.Printf("hostile: calls of %d servers, %d at once, without and with a hostile one beside them\n", others, abreast)
	fmt.Printf("  %-22s %18s %18s %10s %10s %8s\n", "", "median", "p99", "p99 ratio", "rate ratio", "calls")
	for _, kind := range hostilities() {
		if err := s.beside(kind, n); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

func (s *soak) beside(kind hostility, n int) error {
	entries := []entry{{name: "hostile", args: kind.args, fields: kind.fields}}
	for i := range others {
		entries = append(entries, entry{name: fmt.Sprintf("server-%d", i)})
	}
	h, err := s.start(entries...)
	if err != nil {
		return err
	}
	defer h.end()
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
	if err := h.stop(); err != nil {
		return err
	}
	s.Must("processes left", h.remaining(), 0)
	return nil
}

// A beside is the calls of the others, without (0) and with (1) the hostility.
type beside struct {
	host  *host
	kind  hostility
	tally *tally
	sent  []time.Time // by number
	took  [2][]time.Duration
	spent [2]time.Duration
	calls int // to the others, on their way
	acts  int // hostile calls, on their way
	acted int // and answered
}

// round makes n calls; with the hostility so many that it was there at least
// once. It returns when everything is answered.
func (b *beside) round(with, n int) error {
	began, acted, done := time.Now(), b.acted, 0
	for range abreast {
		b.call()
	}
	for range with * b.kind.atOnce {
		b.act(answer{})
	}
	for over := false; b.calls+b.acts > 0; {
		a, err := b.host.answer()
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

// take takes an answer and, unless the round is over, makes the next call.
func (b *beside) take(a answer, with int, over bool) (isCall bool, err error) {
	if strings.HasPrefix(string(a.ID), `"hostile`) {
		b.acts--
		b.acted++
		switch {
		case !over:
			b.act(a)
		case b.kind.next != nil:
			b.kind.next(answer{}) // tidies up
		}
		return false, nil
	}
	answered := b.tally.answered
	if err := b.tally.take(a); err != nil || b.tally.answered == answered {
		return false, err
	}
	id, _ := strconv.Atoi(string(a.ID)) // the tally took it
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
