package main

import (
	"fmt"
	"strconv"
)

// A tally is what became of calls with a number each.
type tally struct {
	mayFail  func(id int) bool
	seen     []bool // by number: answered
	answered int
	outcomes map[string]int // of those that failed

	twice     int // answers that came again
	misrouted int // answers of another call
	unsaid    int // failures that do not say whether the call ran
	wrong     int // failures where nothing should fail
}

func newTally(mayFail func(id int) bool) *tally {
	return &tally{mayFail: mayFail, outcomes: map[string]int{}}
}

// next is the number of the next call.
func (t *tally) next() int {
	t.seen = append(t.seen, false)
	return len(t.seen) - 1
}

// nonce is what the call with a number gets back.
func nonce(id int) string { return fmt.Sprintf(`{"nonce":%d}`, id) }

// take counts an answer. One to nothing that was asked is an error.
func (t *tally) take(a answer) error {
	id, err := strconv.Atoi(string(a.ID))
	if err != nil || id < 0 || id >= len(t.seen) {
		return fmt.Errorf("an answer to nothing: %.200s", a.line)
	}
	if t.seen[id] {
		t.twice++
		return nil
	}
	t.seen[id] = true
	t.answered++
	switch outcome := a.outcome(); {
	case !a.Result.IsError && string(a.Result.StructuredContent) != nonce(id):
		t.misrouted++
		fmt.Printf("  call %d got %.200s\n", id, a.line)
	case !a.Result.IsError:
	case !t.mayFail(id):
		t.wrong++
		fmt.Printf("  call %d failed: %.500s\n", id, a.line)
	case outcome == "":
		t.unsaid++
		fmt.Printf("  call %d failed and does not say whether it ran: %.500s\n", id, a.line)
	default:
		t.outcomes[outcome]++
	}
	return nil
}

func (t *tally) lost() int { return len(t.seen) - t.answered }

// missing names calls that have no answer, the first of them.
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

// judge fails the soak unless every call has one answer, its own.
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
