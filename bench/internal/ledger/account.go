package ledger

import "github.com/dynmcp/dynmcp/bench/internal/verdict"

// An Account compares how often servers ran calls with what hosts were told about them.
type Account struct {
	Once, Again, Never int
	Denied             int            // ran, and are said to be not sent
	Lost               int            // ran, and have no result
	Failed             map[string]int // failures by their outcome
}

// Add adds a call that ran so many times. The outcome is that of its failure, if it failed.
func (a *Account) Add(ran int, failed bool, outcome string) {
	switch ran {
	case 0:
		a.Never++
	case 1:
		a.Once++
	default:
		a.Again++
	}
	if !failed {
		return
	}
	if a.Failed == nil {
		a.Failed = map[string]int{}
	}
	a.Failed[outcome]++
	if ran > 0 {
		a.Lost++
		if outcome == "not_sent" {
			a.Denied++
		}
	}
}

// Judge fails v unless each call ran once, and none that ran is said to be not sent.
func (a *Account) Judge(v *verdict.Verdict) {
	v.Must("calls that ran again", a.Again, 0)
	v.Must("calls that did not run", a.Never, 0)
	v.Must("calls that ran and are said to be not sent", a.Denied, 0)
}
