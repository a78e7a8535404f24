// Package verdict collects the failures of a soak or proof.
package verdict

import "fmt"

// A Verdict is the failures so far, and the parts that could not run. It is for one goroutine.
type Verdict struct {
	Failed   bool
	Failures []string
	skipped  []string
}

// Must fails unless a count is the wanted one.
func (v *Verdict) Must(what string, got, want int) {
	if got != want {
		v.Fail("%s: %d, must be %d", what, got, want)
	}
}

// Fail records a failure, and prints it after FAIL.
func (v *Verdict) Fail(format string, args ...any) {
	v.Failed = true
	v.Failures = append(v.Failures, fmt.Sprintf(format, args...))
	fmt.Printf("  FAIL: %s\n", v.Failures[len(v.Failures)-1])
}

// Skip prints, now and in Close, that a part cannot run here.
func (v *Verdict) Skip(why string) {
	v.skipped = append(v.skipped, why)
	fmt.Println("  NOT RUN:", why)
}

// Close prints again which parts did not run, and reports whether there was no failure.
func (v *Verdict) Close() bool {
	for _, what := range v.skipped {
		fmt.Println("NOT RUN:", what)
	}
	return !v.Failed
}
