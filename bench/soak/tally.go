package main

import (
	"fmt"
	"strconv"

	"github.com/dynmcp/dynmcp/bench/internal/web"
)

// A tally counts the results of numbered calls.
type tally struct {
	mayFail  func(id int) bool
	seen     []bool // whether each call was answered
	answered int
	outcomes map[string]int // of failed calls

	twice     int // repeated answers
	misrouted int // answers to another call
	unsaid    int // failures without an outcome
	wrong     int // failures of calls that may not fail
}

func newTally(mayFail func(id int) bool) *tally {
	return &tally{mayFail: mayFail, outcomes: map[string]int{}}
}

// next returns the number for the next call.
func (t *tally) next() int {
	t.seen = append(t.seen, false)
	return len(t.seen) - 1
}

// nonce returns the arguments of a call, which are also its result.
func nonce(id int) string { return fmt.Sprintf(`{"nonce":%d}`, id) }

// take counts an answer. It returns an error if there was no such call.
func (t *tally) take(a answer) error {
	id, err := strconv.Atoi(string(a.ID))
	if err != nil || id < 0 || id >= len(t.seen) {
		return fmt.Errorf("an answer to nothing: %.200s", a.Line)
	}
	if t.seen[id] {
		t.twice++
		return nil
	}
	t.seen[id] = true
	t.answered++
	switch outcome := web.Outcome(a.Line); {
	case !a.Result.IsError && string(a.Result.StructuredContent) != nonce(id):
		t.misrouted++
		fmt.Printf("  call %d got %.200s\n", id, a.Line)
	case !a.Result.IsError:
	case !t.mayFail(id):
		t.wrong++
		fmt.Printf("  call %d failed: %.500s\n", id, a.Line)
	case outcome == "":
		t.unsaid++
		fmt.Printf("  call %d failed and does not say whether it ran: %.500s\n", id, a.Line)
	default:
		t.outcomes[outcome]++
	}
	return nil
}

func (t *tally) lost() int { return len(t.seen) - t.answered }

// missing names the first calls without an answer.
func (t *tally) missing() string {
	text := fmt.Sprintf("%d of %d calls have no answer:", t.lost(), len(t.seen))
	named := 0
	for id, seen := range t.seen {
		if !seen && named < 20 {
			text += fmt.Sprintf(" %d", id)
			named++
		}
	}
	if t.lost() > named {
		text += " …"
	}
	return text
}

// judge fails the soak unless each call has exactly one answer, which is its own.
func (s *soak) judge(t *tally) {
	if t.lost() > 0 {
		fmt.Println(" ", t.missing())
	}
	s.Must("calls without an answer", t.lost(), 0)
	s.Must("answers that came twice", t.twice, 0)
	s.Must("answers of another call", t.misrouted, 0)
	s.Must("failures that do not say whether the call ran", t.unsaid, 0)
	s.Must("failures of servers that do not fail", t.wrong, 0)
}
