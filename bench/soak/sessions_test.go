package main

import "testing"

func TestCallsOfAForgottenSessionAreWrittenDown(t *testing.T) {
	f := &forgetful{ran: map[int]int{}, refused: map[int]int{}}
	first := f.begin()
	f.left = 2
	for nonce, want := range []bool{true, true, false} {
		if got := f.enter(first, nonce); got != want {
			t.Errorf("call %d: got %t, want %t", nonce, got, want)
		}
	}
	if f.forgotten != 1 || f.underWay != 2 {
		t.Errorf("%d sessions forgotten with %d calls under way, want 1 with 2", f.forgotten, f.underWay)
	}
	if second := f.begin(); !f.enter(second, 2) || f.enter(first, 3) {
		t.Error("the new session is refused, or the old one is not")
	}
	if f.ran[2] != 1 || f.refused[2] != 1 || f.ran[3] != 0 || f.refused[3] != 1 {
		t.Errorf("ran %v, refused %v", f.ran, f.refused)
	}
}

func TestTheLedgerOfSessionsIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		ran  map[int]int
		said map[int]string
		fail bool
	}{
		"each once":           {map[int]int{0: 1, 1: 1}, nil, false},
		"one twice":           {map[int]int{0: 2, 1: 1}, nil, true},
		"one never":           {map[int]int{0: 1}, map[int]string{1: "not_sent"}, true},
		"one lost its answer": {map[int]int{0: 1, 1: 1}, map[int]string{1: "unknown"}, true},
	} {
		s := &soak{}
		s.judgeSessions(&forgetful{ran: c.ran}, 2, c.said, 0)
		if s.Failed != c.fail {
			t.Errorf("%s: failed is %t, want %t", name, s.Failed, c.fail)
		}
	}
}
